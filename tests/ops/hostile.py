"""Calls of operators that no caller means: those of frontend/testing/op_db/, each with one argument made wrong.

    cases = Cases(info)          of an operator, or of all its forms
    cases.run(number)            None, or what is wrong with the answer to that call
    findings(names)              those of several operators, each call beside guard pages, in processes that may die

An answer is a result that lies in memory, or an error that some line of the library raises on purpose. What the
interpreter or numpy stumbled over (an IndexError where a list was too short, an AssertionError, what numba says of
types) is a finding: nobody had checked. So is a result that reaches out of its memory, which tests/guarded.py shows.
"""

import dis
import json
import math
import os
import sys
import traceback
import warnings

import redispatch as rd
from redispatch.dispatch import bind
from redispatch.testing.op_db import op_db
from redispatch.testing.op_info import each

from .. import guarded
from ..drawing import generator

NUMBERS = [0, 1, -1, 7, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
FEW = [0, -1, 2**40, 2**62, -(2**63)]
FLOATS = [0.0, -1.0, 1e30, math.nan, -math.inf]
DTYPES = ["bool", "uint8", "int64", "float32", "float64", "complex64"]
INDICES = [-1, 1 << 40, -(2**63)]
AS_LONG = ("special_laguerre_polynomial_l",)  # which takes as many steps as its degree, as PyTorch's does
MANY = 1 << 20  # elements of a result that is not read


def shapes(shape):
    """Shapes beside this one."""
    yield "without a dimension", shape[:-1]
    yield "without the first dimension", shape[1:]
    yield "with another dimension", (*shape, 2)
    yield "with another first dimension", (1, *shape)
    yield "without dimensions", ()
    yield "one element", (1,)
    yield "empty", (0,)
    yield "of many dimensions", (1,) * 7
    for at, size in enumerate(shape):
        for other in {0, 1, size - 1, size + 1} - {size, -1}:
            yield f"size {other} at {at}", (*shape[:at], other, *shape[at + 1 :])


def reshaped(x, shape):
    """Elements of `x` in another shape, repeated as often as they are needed."""
    count = math.prod(shape)
    if not x.numel():
        return rd.zeros(shape, dtype=x.dtype)
    flat = x.detach().reshape(-1)
    return flat.repeat(-(-count // x.numel()))[:count].reshape(shape).clone()


def of_tensor(x):
    """Names of tensors that are put in the place of one -> functions that make them."""
    shape = tuple(x.shape)
    for name, other in shapes(shape):
        if other != shape:
            yield name, lambda other=other: reshaped(x, other)
    for name in DTYPES:
        dtype = getattr(rd, name)
        if x.dtype is not dtype:
            yield f"of {name}", lambda dtype=dtype: x.detach().to(dtype)
    if x.dtype.is_floating_point:
        for number in FLOATS[2:4]:
            yield f"of {number}", lambda number=number: rd.full_like(x, number)
    elif x.numel() and not x.dtype.is_complex and x.dtype is not rd.bool:
        for number in INDICES:
            limits = rd.iinfo(x.dtype)
            number = min(max(number, limits.min), limits.max)
            yield f"of {number}", lambda number=number: rd.full_like(x, number)
            yield f"{number} at the end", lambda number=number: ended(x, number)
    if x.numel() > 1:
        yield "expanded", lambda: x.detach().as_strided(shape, (0,) * len(shape))
        yield "overlapping", lambda: x.detach().as_strided(shape, (0,) * (len(shape) - 1) + (1,)) if shape[-1] else x
    if len(shape) > 1:
        yield "transposed", lambda: x.detach().transpose(0, -1).contiguous().transpose(0, -1)
        yield "turned", lambda: x.detach().transpose(0, -1)


def ended(x, number):
    made = x.detach().clone().contiguous()
    made.view(-1)[-1] = number
    return made


def of_list(values):
    """Other lists of numbers."""
    yield "empty", list
    yield "short", lambda: values[:-1]
    yield "long", lambda: [*values, *values[-1:]]
    yield "of one", lambda: values[:1]
    for at in {0, len(values) - 1} if values else ():
        for number in FEW:
            yield f"{number} at {at}", lambda at=at, number=number: [*values[:at], number, *values[at + 1 :]]


def of_value(value):
    """Names of values that are put in the place of one -> functions that make them."""
    if isinstance(value, rd.Tensor):
        yield from of_tensor(value)
    elif isinstance(value, bool):
        yield "not", lambda: not value
    elif isinstance(value, int):
        for number in [*NUMBERS, value + 1, value - 1]:
            yield str(number), lambda number=number: number
    elif isinstance(value, float):
        for number in FLOATS:
            yield str(number), lambda number=number: number
    elif isinstance(value, complex):
        yield "nan", lambda: complex(math.nan, 0)
    elif isinstance(value, str):
        yield "text", lambda: "nonsense"
        yield "no text", lambda: ""
    elif isinstance(value, rd.dtype):
        for name in DTYPES:
            yield name, lambda name=name: getattr(rd, name)
    elif isinstance(value, list | tuple):
        values = list(value)
        if any(isinstance(one, rd.Tensor) for one in values):
            yield "empty", list
            yield "short", lambda: values[:-1]
            yield "long", lambda: [*values, *values[-1:]]
            for at, one in enumerate(values[:2]):
                for name, make in of_value(one):
                    yield f"at {at} {name}", lambda at=at, make=make: [*values[:at], make(), *values[at + 1 :]]
        elif all(isinstance(one, bool) for one in values):
            yield "empty", list
            yield "short", lambda: values[:-1]
            yield "long", lambda: [*values, True]
            yield "all", lambda: [True] * len(values)
            yield "nothing", lambda: [False] * len(values)
        elif all(isinstance(one, int) for one in values):
            yield from of_list(values)


class Cases:
    """All the wrong calls of an operator's forms: samples as they are, and with one argument made wrong."""

    def __init__(self, info, samples=3, forms=True):
        self.name = str(info)
        self.calls = []  # (form, its stack, place, what is wrong there, function that makes it)
        for form, stack in self.right_calls(info, samples):
            if not forms and form is not info.op:
                continue
            self.calls.append((form, stack, 0, "right", None))
            for place, value in enumerate(stack):
                others = of_nothing(form, place, stack) if value is None else of_value(value)
                self.calls += [(form, stack, place, wrong, make) for wrong, make in others]
            for one in range(len(stack)):
                for two in range(one):
                    if isinstance(stack[one], rd.Tensor) and isinstance(stack[two], rd.Tensor):
                        self.calls.append((form, stack, one, "the same tensor as another", two))

    @staticmethod
    def right_calls(info, samples):
        """The forms of an operator, each with arguments in their order."""
        for dtype in dict.fromkeys([info.main_dtype, *info.dtypes[:1]]):
            found = info.sample_inputs(dtype)
            step = max(1, len(found) // samples)
            for sample in found[::step][:samples]:
                yield info.op, bind(info.op.schema, sample.arguments, dict(sample.kwargs))
                if info.inplace is not None:
                    yield info.inplace, bind(info.inplace.schema, sample.arguments, dict(sample.kwargs))
                if info.out is not None and info.out.schema.returns and dtype is info.main_dtype:
                    try:
                        results = each(info.run(sample.copy()))
                        one = info.writing_to([x.detach().clone() for x in results], sample)
                        yield info.out, bind(info.out.schema, one.arguments, dict(one.kwargs))
                    except (RuntimeError, ValueError, AttributeError):
                        pass  # not every sample can be written: test_forms.py knows which

    def __len__(self):
        return len(self.calls)

    def describe(self, number):
        form, _, place, wrong, _ = self.calls[number]
        return f"{form}: {form.schema.arguments[place].name if form.schema.arguments else ''} {wrong}"

    def run(self, number):
        """Makes the call. Returns None, or what is wrong with the answer."""
        form, stack, place, _, make = self.calls[number]
        guarded.lie_at("start" if generator("side", self.name, number).random() < 0.25 else "end")
        stack = list(stack)
        try:
            if isinstance(make, int):
                stack[place] = stack[make]
            elif make is not None:
                stack[place] = make()
            seen = {}
            stack = [near_the_edge(value, seen) for value in stack]
        except Exception:
            return None  # the argument cannot be made at all
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rd.manual_seed(0)
            try:
                names = [argument.name for argument in form.schema.arguments]
                count = form.schema.kwarg_only_start
                result = form(*stack[:count], **dict(zip(names[count:], stack[count:], strict=True)))
                for x in each(result):
                    if isinstance(x, rd.Tensor) and x.device.type == "cpu" and x.numel() < MANY:
                        x.clone()
            except rd.OutOfMemoryError:
                return None
            except Exception as error:
                return stumbled(error)
        return None


def of_nothing(form, place, stack):
    """Yields what may stand in the place of an argument that was left out."""
    kind = str(form.schema.arguments[place].type)
    tensors = [x for x in stack if isinstance(x, rd.Tensor)]
    if "Tensor" in kind and "List" not in kind and tensors:
        x = tensors[0]
        yield "as the first", lambda: x.detach().clone()
        yield "an empty one", lambda: reshaped(x, (0,))
        yield "one element", lambda: reshaped(x, (1,))
        yield "without dimensions", lambda: reshaped(x, ())
        yield "of integers", lambda: reshaped(x, x.shape[:1]).to(rd.int64)
    elif "int" in kind.lower() and "List" in kind:
        yield "empty", list
        yield "huge", lambda: [2**40, 2**62]
        yield "least", lambda: [-(2**63)]
    elif "int" in kind.lower():
        for number in NUMBERS:
            yield str(number), lambda number=number: number
    elif "float" in kind:
        for number in FLOATS:
            yield str(number), lambda number=number: number
    elif "number" in kind.lower():
        yield "nan", lambda: math.nan
        yield "complex", lambda: 1 + 2j
        yield "huge", lambda: 2**62


def near_the_edge(value, seen):
    """The value, with its tensors beside guard pages; a tensor that stands twice stays one."""
    if isinstance(value, rd.Tensor):
        if id(value) not in seen:
            seen[id(value)] = guarded.placed(value) if value.device.type == "cpu" else value
        return seen[id(value)]
    return [near_the_edge(one, seen) for one in value] if isinstance(value, list | tuple) else value


MISTAKES = (guarded.OutsideError, AssertionError, KeyError, AttributeError, ZeroDivisionError, MemoryError)


def stumbled(error):
    """Returns what an error says of a check that is missing; None where a line of the library raises it on purpose."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = frames[-1].filename
    if inside.startswith(("<redispatch kernel", guarded.ROOT + "kernels/maths")) and not isinstance(
        error, guarded.OutsideError
    ):
        return None  # where compiled code has a NaN or some number
    ours = inside.startswith((guarded.ROOT, "<redispatch")) and os.sep + ".venv" not in inside
    if ours and raises(error.__traceback__) and not isinstance(error, MISTAKES):
        return None
    *_, where = [frames[-1], *(frame for frame in frames if "/kernels/ops/" in frame.filename)]
    return f"{type(error).__name__}: {str(error)[:120]} ({where.filename}:{where.lineno}, {where.name})"


def raises(trace):
    """Whether the innermost frame was at a `raise`."""
    while trace.tb_next is not None:
        trace = trace.tb_next
    steps = dis.get_instructions(trace.tb_frame.f_code)
    return any(step.offset == trace.tb_lasti and step.opname == "RAISE_VARARGS" for step in steps)


def findings(names, samples=1, forms=False, every=1):
    """Yields what is wrong with the answers to the calls of these operators, or to every so many of them."""
    for info in op_db:
        if str(info) in names:
            names.remove(str(info))
            cases = Cases(info, samples, forms)
            for number, fate in guarded.isolated(lambda n, c=cases: c.run(n * every), len(cases) // every, seconds=20):
                if fate != "timeout" or not str(info).startswith(AS_LONG):
                    yield f"{cases.describe(max(number, 0) * every)}: {fate}"
            yield len(cases) // every


if __name__ == "__main__":  # in a process of its own: kernels are not compiled in it, or all are its own
    if os.environ.get("NUMBA_DISABLE_JIT"):
        guarded.fence_kernels()
    for found in findings(**json.loads(sys.argv[1])):
        print(json.dumps(found), flush=True)
