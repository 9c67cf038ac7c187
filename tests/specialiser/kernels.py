"""Small boxed kernels for tests of the evaluator, and how to try one: on a thing whose attributes are not known before.

`seen` is what ordinary functions note down while a kernel runs; `note` and `bump` are such functions, which the
evaluator leaves as calls.
"""

from itertools import count
from typing import Any

from redispatch.dispatch import TensorBase, define, impl, keyset

from .twice import ADDRESS, specialize

numbers = count()
seen: list[Any] = []


class Thing(TensorBase):
    """A tensor by its keyset alone, with whatever attributes a test gives it."""

    def __init__(self, keys="CPU", **attributes):
        self._keyset = keyset(keys)
        self._counter, self._autograd = [0], None
        vars(self).update(attributes)

    def __repr__(self):
        return f"Thing({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def note(value):
    """Notes a value, and gives it back."""
    seen.append(value)
    return value


def bump(thing):
    """Counts on, and gives the new count."""
    thing.count += 1
    return thing.count


def append(values, value):
    """Changes a list."""
    values.append(value)
    return values


def operator_of(kernel, schema="(Tensor x) -> Tensor", key="CPU"):
    """A new operator whose boxed kernel is this one."""
    op, _ = define(f"evaluated::{kernel.__name__}_{next(numbers)}{schema}", place="test")
    impl(op, key, kernel, convention="boxed", place=f"{kernel.__name__} of the test")
    return op


def codes_for(op):
    """The functions that were made for an operator."""
    return [made for table in op.tables.values() for made in table.values()]


def code_for(op):
    """The one function that was made for an operator."""
    (code,) = codes_for(op)
    return code


def outcome(op, thing):
    """All that a call comes to: what it gives or raises, what was noted, what the thing is then."""
    seen.clear()
    try:
        result = f"gives {op(thing)!r}"
    except Exception as error:
        result = f"raises {type(error).__name__}: {error}"
    return ADDRESS.sub("0x", result), list(map(repr, seen)), ADDRESS.sub("0x", repr(thing))


def outcomes(op, things, how, reset):
    """The outcomes of calls with each thing, once there is code: the first calls run boxed under True."""
    with specialize(how):
        for _ in range(3 if how is True else 0):
            outcome(op, things[0]())
        reset()
        return [outcome(op, make()) for make in things]
