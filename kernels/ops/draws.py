"""Draws: the way from a call to the loop that fills a tensor with random numbers.

To draw four numbers takes 0.2 us, and to find out how takes ten times as long: checks, the loop for the dtype, the
order of memory. All of that follows from the tensor's metadata and the distribution's numbers, so it is decided once
for tensors that look alike, and a call looks it up and hands the generator's state to the loop. What is decided is for
a twister and the memory of the CPU; other generators and devices go the long way each time.

Read next: random.py, the operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from redispatch import kernels
from redispatch.dispatch import FunctionSchema, Memo, TensorBase, dataclass
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import (
    CPU,
    Tensor,
    as_numpy,
    depends_on_default,
    dtypes,
    empty_from,
    get_default_dtype,
    output_spec,
    remember,
)
from redispatch.kernels import FILLS, Elementwise, Operand, Twister, numel

from ..declare.declare import Operator
from ..declare.operator import SEEDED, kernel
from ..declare.plan import PLANS, Deciding, Plan, metadata
from ..declare.structured import check_no_internal_overlap
from .creation import FACTORY, Rule, factory, like, unwritten
from .generators import Generator, default_generator, drawn, twister_of

GENERATOR = "*, Generator? generator=None"


def no_gradient(grad: Any) -> Any:
    """Nothing of the former value is left."""
    return grad.new_zeros(grad.shape)


FILLING: dict[str, Any] = {"tags": SEEDED, "derivative": no_gradient, "function": False}  # facts of what fills `self`


# --- in place --------------------------------------------------------------------------------------------------------


@frozen
class Draw:
    """A distribution: fills tensors with its numbers.

    choose: `choose(x, *numbers)` checks both, and returns the loop and the numbers that it takes: a function of
        kernels/cpu/random.py, or the loops of a scalar function. It is asked once for all that look alike.
    numbers_of: of a scalar function, what makes the random numbers that it takes, where they go by position.
    """

    op: Any  # the operator that does the same on all devices

    def __init__(self, choose: Callable[..., Any], numbers_of: Callable[..., Tensor] | None = None) -> None:
        self.choose, self.numbers_of = choose, numbers_of
        self.fills = Memo(PLANS)

    @leaf
    @inline
    def fill(self, x: Tensor, generator: Generator | None, *numbers: Any) -> Tensor:
        """Fills a tensor from a generator, or from the default one, and returns it."""
        source = default_generator if generator is None else generator
        state = source._state
        facts = (metadata(x), *[value if value else str(value) for value in numbers])  # 0.0 is equal to -0.0
        fill = self.fills.get(facts)
        if fill is None or type(state) is not Twister or x._array is None:
            return self.fill_first(facts, x, generator, numbers)
        fill(state, x._array, x._offset)
        return x

    def fill_first(self, facts: Any, x: Tensor, generator: Generator | None, numbers: tuple[Any, ...]) -> Tensor:
        """Fills a tensor the long way; how that is done is remembered."""
        loop, *given = self.choose(x, *numbers)
        if isinstance(loop, Elementwise):
            fill_by(x, generator, loop, self.numbers_of, *given)
        else:
            fill(x, generator, loop, *given)
        if x._device is CPU and x._array is not None:
            self.fills[facts] = self.prepared(x, numbers)
        return x

    def prepared(self, x: Tensor, numbers: tuple[Any, ...]) -> Any:
        """The fill from a twister for tensors that look so: `f(twister, array, offset)`; None where there is none."""
        chosen = self.choose(x, *numbers)
        if chosen is None:
            return None
        loop, *given = chosen
        memory = parts(x)
        fill = FILLS[loop.name if isinstance(loop, Elementwise) else loop.__name__](memory, *given)
        if not x._dtype.is_complex:
            return fill
        real = x._dtype.to_real().array
        return lambda twister, array, at: fill(twister, array.view(real), 2 * at)


def filling(schema: str, numbers_of: Callable[..., Tensor] | None = None, **facts: Any) -> Any:
    """A decorator that declares an operator which fills `self` with random numbers, at CPU and Meta, by what chooses
    the loop: see `Draw`."""

    def declare(choose: Callable[..., Any]) -> Any:
        draw = Draw(choose, numbers_of)

        @inline
        def filled(self: Tensor, *args: Any) -> Tensor:
            return draw.fill(self, args[-1], *args[:-1])

        filled.__name__, filled.__doc__ = choose.__name__, choose.__doc__
        declared = kernel(schema, "CPU", "Meta", **FILLING | facts)(filled)
        draw.op = getattr(declared, "op", declared).functional
        DRAWS[draw.op] = draw
        return declared

    return declare


DRAWS: dict[Any, Draw] = {}  # by the operator that fills


def fill(self: Tensor, generator: Any, loop: Callable[..., Any], *numbers: Any) -> Tensor:
    """Fills a tensor by a loop with a random number for each element, and each part of a complex one; returns it."""
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        memory = parts(self)
        loop(memory, *drawn(generator, numel(memory.shape), self._device), *numbers)
    return self


def fill_by(self: Tensor, generator: Any, loops: Elementwise, numbers_of: Any, *others: Any) -> Tensor:
    """Fills a tensor with a scalar function's results for random numbers of float64 and `others`, and returns it."""
    check_no_internal_overlap(self)
    if self._device.type != "meta":
        twister = twister_of(generator, self._device)
        if twister is not None and loops.name in FILLS:
            doubled = [doubles(one, self) if isinstance(one, Tensor) else one for one in others]
            twister.fill(loops.name, self._operand, *doubled)
            return self
        given = [value._operand if isinstance(value, Tensor) else value for value in others]
        loops.run(self._operand, numbers_of(self, generator)._operand, *given, dtype="float64")
    return self


def doubles(x: Tensor, like: Tensor) -> np.ndarray:
    """The elements of `x`, broadcast to the shape of a contiguous tensor, as float64 in the order of memory."""
    return np.ascontiguousarray(np.broadcast_to(as_numpy(x), like._shape), np.float64).reshape(-1)


def parts(self: Tensor) -> Operand:
    """The memory of a tensor, of a complex one as real numbers: its two parts stand along one more dimension."""
    x = self._operand
    if not self._dtype.is_complex:
        return x
    real, strides = self._dtype.to_real(), (*(2 * step for step in x.strides), 1)
    array: Any = x.array.view(real.array) if isinstance(x.array, np.ndarray) else x.array
    return Operand(array, real.name, (*x.shape, 2), strides, 2 * x.offset)


def numbers_like(self: Tensor, dtype: Any, generator: Any, loop: Callable[..., Any]) -> Tensor:
    """Random numbers in a tensor whose dimensions lie in the order of those of `self`."""
    return fill(like(self, dtype, None, False, None), generator, loop)


def unit_interval(self: Tensor, generator: Any) -> Tensor:
    """Uniform float64 numbers in [0, 1), of the shape of `self`."""
    return numbers_like(self, dtypes.float64, generator, kernels.uniform)


def single_interval(self: Tensor, generator: Any) -> Tensor:
    """Uniform float32 numbers in [0, 1), of the shape of `self`."""
    return numbers_like(self, dtypes.float32, generator, kernels.uniform)


def exponential_numbers(self: Tensor, generator: Any) -> Tensor:
    """Exponential numbers of the dtype and shape of `self`."""
    return numbers_like(self, None, generator, kernels.exponential)


def standard_normal(self: Tensor, generator: Any) -> Tensor:
    """Normal float64 numbers, of the shape of `self`."""
    return numbers_like(self, dtypes.float64, generator, kernels.normal)


# --- of tensors of parameters ---------------------------------------------------------------------------------------


@inline
def is_tensor(value: Any) -> TypeGuard[Tensor]:
    return isinstance(value, TensorBase)


@frozen
class Sampling:
    """The kernel of an operator whose result is drawn by the elements of tensors, around one that goes the long way.

    prepare: of a result and the arguments but the generator, which is the last, `f(twister, array, offset, ...)`, with
        array and offset of each tensor, which tells whether their elements are refused and nothing was drawn; or None.
    """

    def __init__(self, prepare: Callable[..., Any], long_way: Callable[..., Tensor]) -> None:
        self.prepare, self.long_way, self.plans = prepare, long_way, Memo(PLANS)

    @leaf
    @inline
    def run(self, *args: Any) -> Tensor:
        """A tensor of random numbers."""
        source = default_generator if args[-1] is None else args[-1]
        state = source._state
        facts = tuple(metadata(value) if is_tensor(value) else value for value in args[:-1])
        plan = self.plans.get(facts)
        if plan is None or type(state) is not Twister:
            return self.first(facts, args)
        result = empty_from(plan.outputs[0])
        given: list[Any] = []
        for value in args[:-1]:
            if is_tensor(value):
                array = value._array
                if array is None:
                    array = value._operand.array  # RuntimeError where it has none
                given += (array, value._offset)
        if plan.run(state, result._array, 0, *given):
            return self.long_way(*args)  # which says what is wrong
        return result

    def first(self, facts: Any, args: tuple[Any, ...]) -> Tensor:
        """Draws the long way; how that is done shortly is remembered."""
        result = self.long_way(*args)
        if result._device is CPU and result._array is not None and result._shape.numel():
            run = self.prepare(result, *args[:-1])
            if run is not None:
                spec = output_spec(result._shape, result._dtype, result._device, result._stride)
                self.plans[facts] = Plan((spec,), run)
        return result


def sampling(schema: str, prepare: Callable[..., Any], **facts: Any) -> Any:
    """A decorator that declares an operator, at CPU and Meta, by its kernel that goes the long way: see `Sampling`."""

    def declare(long_way: Callable[..., Tensor]) -> Any:
        draw = Sampling(prepare, long_way)

        @inline
        def sampled(*args: Any) -> Tensor:
            return draw.run(*args)

        sampled.__name__, sampled.__doc__ = long_way.__name__, long_way.__doc__
        return kernel(schema, "CPU", "Meta", tags=SEEDED, **facts)(sampled)

    return declare


# --- factories -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """The fill of a new tensor, in a factory's rule."""

    draw: Draw
    numbers: tuple[Any, ...]
    generator: Generator | None

    def __call__(self, result: Tensor) -> Tensor:
        if result._device is CPU and type(result) is Tensor and self.draw.op in DRAWS:  # as later calls, by no operator
            return self.draw.fill(result, self.generator, *self.numbers)
        filled: Tensor = self.draw.op(result, *self.numbers, generator=self.generator)
        return filled


@frozen
class Factory(Deciding):
    """The kernel of a factory whose rule gives a `Filling`, around the one that goes the long way."""

    def __init__(self, rule: Callable[..., Rule], op: Operator, long_way: Callable[..., Tensor]) -> None:
        self.rule, self.op, self.long_way = rule, op.functional, unwritten(long_way)
        names, arguments = op.names, [one for one in op.text.arguments if one != "*"]
        self.tensors = tuple(i for i, one in enumerate(arguments) if one.startswith("Tensor "))
        self.seat = names.index("generator") if "generator" in names else None
        self.options, self.pinned = names.index("dtype"), names.index("pin_memory")
        self.takes_shape = bool(self.tensors) and "size" not in names
        self.plans = Memo(PLANS)
        depends_on_default(self)

    @cached_property
    def schema(self) -> FunctionSchema:  # type: ignore[override]  # read when it is needed: imports parse none
        return self.op.schema

    @inline
    def run(self, *args: Any) -> Tensor:
        """A new tensor of random numbers."""
        source = default_generator if self.seat is None or args[self.seat] is None else args[self.seat]
        state = source._state
        facts = tuple(self.fact(i, value) for i, value in enumerate(args) if i != self.seat)
        plan = self.plans.get(facts)
        if plan is None or type(state) is not Twister:
            return self.first(facts, args)
        return new_from(plan, state)

    def first(self, facts: Any, args: tuple[Any, ...]) -> Tensor:
        """Makes the tensor the long way; how it was made is remembered."""
        default, result = get_default_dtype(), self.long_way(*args)
        if type(result) is not Tensor or result._device is not CPU or result._array is None or args[self.pinned]:
            return result
        given = [value for i, value in enumerate(args[: self.options]) if i not in self.tensors]
        filling: Any = self.rule(result._dtype, *given, *[result._shape] * self.takes_shape)[-1]
        fill = filling.draw.prepared(result, filling.numbers)
        if fill is not None:
            spec = output_spec(result._shape, result._dtype, result._device, result._stride)
            remember(self, facts, Plan((spec,), fill), default)
        return result


@leaf
@inline
def new_from(plan: Plan, state: Twister) -> Tensor:
    """A new tensor, filled from a twister."""
    result = empty_from(plan.outputs[0])
    plan.run(state, result._array, 0)
    return result


def seeded_factory(rule: Callable[..., Rule], schema: str, options: str = FACTORY, **facts: Any) -> Operator:
    """Declares a factory of random numbers by a rule, which gives a `Filling`; see `factory`."""

    def around(op: Operator, long_way: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return Factory(rule, op, long_way).run

    return factory(rule, schema, options, around=around, tags=SEEDED, **facts)
