"""Runs things twice from equal starting points, boxed and specialised, and says where they differ."""

import difflib
import re
from contextlib import contextmanager
from types import FunctionType

import numpy as np

from redispatch.autograd.graph import Node
from redispatch.dispatch import STATE, describe
from redispatch.dispatch.config import config
from redispatch.dispatch.tensor import Tensor, UntypedStorage, shown

# What a run has left behind, as lines of text that can be compared with those of another run --------------------------

# A `World` gives each tensor, storage and node that it meets a label, in the order in which it meets them: so two
# lines that say `t3` speak of the same object. It writes down what users can see of them, and goes on to whatever
# these lead to: bases, gradients, inner tensors, nodes down to the leaves and what they have saved. Nothing here
# calls an operator, but for what users call, too, when they ask a view for its `grad_fn`.

ADDRESS = re.compile(r"0x[0-9a-f]+")


class World:
    """`values=False`: what tensors hold is left out, since it is undefined."""

    def __init__(self, values=True):
        self.values = values
        self.lines = []
        self._labels = {}  # id -> label
        self._held = []  # so that no id comes back
        self._pending = []  # met, not described yet

    # Saying what happens --------------------------------------------------------------------------------------------

    def say(self, what, *values):
        """A line about something that happens now."""
        self.lines.append(" ".join([what, *(self.look(value) for value in values)]))

    def look(self, value):
        """A value as it is now; of a tensor, what may be different later."""
        if isinstance(value, list | tuple):
            return f"{type(value).__name__}({', '.join(map(self.look, value))})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key}: {self.look(item)}' for key, item in value.items())}}}"
        if isinstance(value, Tensor):
            version = "-" if value._counter is None else value._counter[0]
            return f"{self.word(value)}:{value._summary()}v{version}{'g' if value._requires_grad() else ''}"
        return self.word(value)

    def state(self):
        """The dispatch state as it is now, for a line."""
        return ADDRESS.sub("0x", repr(STATE.get()))

    # Labels ---------------------------------------------------------------------------------------------------------

    def word(self, value):
        """The word for a value in a line: by its label, or by its type and value."""
        if isinstance(value, Tensor):
            return self.label(value, "t")
        if isinstance(value, Node):
            return self.label(value, "n")
        if isinstance(value, UntypedStorage):
            return self.label(value, "s")
        if isinstance(value, list | tuple):
            return f"{type(value).__name__}({', '.join(map(self.word, value))})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{key}: {self.word(item)}' for key, item in value.items())}}}"
        if isinstance(value, BaseException):
            return error_text(value)
        if isinstance(value, type | FunctionType):
            return value.__qualname__
        return f"{type(value).__name__} {ADDRESS.sub('0x', repr(value))}"

    def label(self, value, letter):
        known = self._labels.get(id(value))
        if known is None:
            known = self._labels[id(value)] = f"{letter}{len(self._labels)}"
            self._held.append(value)
            self._pending.append(value)
        return known

    # Describing what there is at the end ----------------------------------------------------------------------------

    def describe(self, name, value):
        """Lines about a value and everything that it leads to, as far as there are none yet."""
        self.lines.append(f"{name} = {self.word(value)}")
        while self._pending:
            found = self._pending.pop(0)
            if isinstance(found, Tensor):
                self._tensor(found)
            elif isinstance(found, Node):
                self._node(found)
            else:
                self.lines.append(f"{self.word(found)}: storage of {found.nbytes()} bytes, resizable {found.resizable}")

    def _tensor(self, x):
        facts = {
            "shape": tuple(x._shape),
            "stride": tuple(x._stride),
            "offset": x._offset,
            "dtype": x._dtype,
            "device": str(x._device),
            "keys": describe(x._keyset),
            "storage": x._storage,
            "version": None if x._counter is None else x._counter[0],
            "requires_grad": x._requires_grad(),
            "grad_fn": attempt(lambda: type(x).grad_fn.fget(x)),
            "output_nr": attempt(lambda: type(x).output_nr.fget(x)),
            "retains_grad": attempt(lambda: type(x).retains_grad.fget(x)),
            "grad": x._get_grad(),
            "is_view": x._view is not None,
        }
        if x._view is not None:
            facts |= {
                "base": x._view.base,
                "creation": x._view.creation,
                "same counter": x._counter is x._view.base._counter,
            }
        if vars(x):
            facts["attributes"] = {name: log_of(value) for name, value in vars(x).items()}
        if self.values:
            facts["values"] = held(x)
        self.lines.append(f"{self.word(x)}: {type(x).__name__}")
        self.lines += [f"    {name} {self.word(value)}" for name, value in facts.items()]

    def _node(self, node):
        names = sorted(name for name in dir(node) if name.startswith("_saved_") or name == "variable")
        self.lines.append(f"{self.word(node)}: {node.name()}")
        self.lines += [f"    next {self.word(next_)}" for next_ in node.next_functions]
        self.lines += [f"    output {self.word(output and tuple(output[:3]))}" for output in node._input_metadata]
        self.lines += [f"    {name} {self.word(attempt(lambda name=name: getattr(node, name)))}" for name in names]


def attempt(ask):
    """The result of `ask`, or the error that it raises."""
    try:
        return ask()
    except Exception as error:
        return error


def error_text(error):
    """An error as two runs have it in common: class and text, and what it was raised from."""
    text = f"{type(error).__module__}.{type(error).__qualname__}: {ADDRESS.sub('0x', str(error))}"
    return text if error.__cause__ is None else f"{text} <- {error_text(error.__cause__)}"


def held(x):
    """The values in a tensor's memory, exactly: with the bits where there is a NaN, whose sign is not printed."""
    if x._array is None:
        return None
    array = shown(x)
    words = array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.itemsize == 2 else array
    nans = words.dtype.kind in "fc" and np.isnan(words).any()
    return f"{words.tolist()}{' ' + array.tobytes().hex() if nans else ''}"


def log_of(value):
    """The log of a subclass by its lines; anything else as it is."""
    return value.lines if isinstance(getattr(value, "lines", None), list) else value


# Runs things twice from equal starting points, boxed and specialised, and says where they differ ----------------------

# A *case* is a function without arguments that prepares a run: `case()` makes new tensors, and gives a function of a
# `World` which does something with them and describes them. Cases are prepared boxed, all of them before any of them
# runs: so all that is specialised is what the runs themselves call.


@contextmanager
def specialize(value):
    """A region in which calls run boxed (False), specialised (True), or so and strictly ("strict")."""
    former = config.specialize
    if former is value:  # to set it again would drop all code
        yield
        return
    config.specialize = value
    try:
        yield
    finally:
        config.specialize = former


def lines_of(run, **options):
    """The traces of a run, errors and the dispatch state included."""
    world, before = World(**options), STATE.get()
    try:
        run(world)
    except Exception as error:
        world.say("raised", error)
    if STATE.get() is not before:
        world.lines.append(f"left its state behind: {STATE.get()!r} after {before!r}")
        STATE.set(before)
    return world.lines


def differences(cases, how="strict", **options):
    """{name: text} for each of the cases, {name: case}, that does not do the same twice; the text is a diff."""
    with specialize(False):
        boxed_runs = {name: case() for name, case in cases.items()}
        other_runs = {name: case() for name, case in cases.items()}
        boxed = {name: lines_of(run, **options) for name, run in boxed_runs.items()}
    with specialize(how):
        other = {name: lines_of(run, **options) for name, run in other_runs.items()}
    return {name: difference(boxed[name], other[name]) for name in cases if boxed[name] != other[name]}


def difference(boxed, specialised):
    """The difference, as a diff with some lines around it."""
    return "\n".join(difflib.unified_diff(boxed, specialised, "boxed", "specialised", lineterm="", n=2))


def assert_same(cases, how="strict", **options):
    """Fails where a case does not do the same twice."""
    found = differences(cases, how, **options)
    assert not found, "\n\n".join(f"{name}:\n{text}" for name, text in found.items())
