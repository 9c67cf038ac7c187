"""Pointwise operators: from what happens to one element to all forms of an operator.

The scalar function's parameters are named like the schema's arguments; tensors come as their elements, numbers as they
are. Shapes broadcast, strides follow the inputs', and `promotion` says in which dtype elements are computed and stored:

    same     the inputs' common dtype                     add, mul, neg
    float    the same, integers as the default float      exp, div, sigmoid
    compare  computed in the common dtype, stored as bool eq, lt, logical_and
    real     the same, complex results stored as real     abs
    complex  the same, stored as complex numbers          polar

Note [A plan for arguments that look alike]
A plan (plan.py: dtypes, shape, strides, which loop) depends on the metadata of the tensors and on the types of the
other arguments, values aside. It is decided once and cached; from then on a call is one look-up, one fresh tensor, one
loop. Where a value does decide (`alpha=1` needs no product), there is a scalar function of its own, a
`Variant` with plans of its own: which one serves follows from the arguments in its `when` alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import lru_cache, partial
from typing import Any

import numpy as np

from redispatch.dispatch import Memo, dataclass, describe_value
from redispatch.dispatch.specialiser.annotations import frozen, inline, leaf
from redispatch.dispatch.tensor import (
    Size,
    Tensor,
    depends_on_default,
    dtype,
    dtypes,
    empty_from,
    get_default_dtype,
    metadata_of,
    no_memory,
    output_spec,
    remember,
    result_type,
)
from redispatch.kernels import Elementwise, Loop, broadcast_shapes, copy, output_strides

from .declare import SEVERAL, Function
from .plan import PLANS, Deciding, Plan
from .structured import (
    Meta,
    Structured,
    check_no_internal_overlap,
    check_writable,
    common_device,
    not_implemented,
)

# What `refuses` names at once: {COMPLEX: "lt_cpu"}.
COMPLEX, WHOLE, HALVES, FLOATING = (SEVERAL[word] for word in ("complex", "whole", "halves", "floating"))
NOT_FLOATING = (*WHOLE, *COMPLEX)

DECLARED: list[Pointwise] = []  # all pointwise operators: a backend gives each of them its kernels
MATHS = "redispatch.kernels.maths."
AS_COMPUTED = ("int64", "uint64", "float32", "float64", "complex64", "complex128")  # stored without a change
OPERANDS = ("self", "other", "exponent", "min", "max")


@dataclass(slots=True, eq=False)
class PointwisePlan(Plan):
    """The plan of a call of any form: beside the output, the dtype to compute in, and the loops, as they are needed.

    run, in_place: the loop into a new output, and into the first argument. A device's launches stand in their places.
    """

    meta: Meta
    compute: str
    fit: Callable[[Any], Any] | None  # how loops want their Python numbers, where not as they are
    in_place: Any = None
    onto_itself: dict[tuple[int, ...], Loop] = field(default_factory=dict)  # the same, if it is other arguments, too
    into: dict[Any, Any] = field(default_factory=dict)  # the loops into `out=`, by its metadata


@frozen
class Variant:
    """One scalar function of an operator: when it is used, which arguments its loops take, and its plans.

    when:      (position, value) of the arguments that must have these values; of a tensor only that it is None
    positions: of the arguments that the scalar function takes
    tensors:   the places of tensors among the arguments
    """

    __slots__ = ("when", "positions", "loops", "plans", "__weakref__")

    def __init__(self, when: dict[int, Any], positions: list[int], loops: Elementwise, tensors: Any) -> None:
        self.when, self.positions, self.loops = tuple(when.items()), tuple(positions), loops
        self.plans = Memo(PLANS, alike=tensors)
        depends_on_default(self)

    @inline
    def suits(self, args: tuple[Any, ...]) -> bool:
        """Whether the arguments have the values that `when` asks for."""
        for position, wanted in self.when:
            if args[position] is not None if wanted is None else args[position] != wanted:  # a tensor may be left out
                return False
        return True


@frozen
class Pointwise(Deciding, Structured):
    """A structured operator whose meta and body follow from scalar functions.

    promotion: one of the words above, or a function of the arguments that gives one; of those, it may ask how tensors
        look, the types of numbers, and the values that a `when` names.
    keep: arguments that keep their own dtype, such as the condition of `where`.
    exact_out: whether `out=` must have the result's very dtype; or what is said where it has another one.
    cost: of one element, in cheap operations.
    """

    elementwise = True
    kind = "pointwise"
    types_decide = True

    def __init__(
        self,
        schema: str,
        *,
        promotion: str | Callable[..., str] = "same",
        keep: tuple[str, ...] = (),
        cost: int = 1,
        exact_out: bool | str = False,
        **options: Any,
    ) -> None:
        super().__init__(schema, tags=("pointwise",), **options)
        self.promotion, self.keep, self.cost = promotion, keep, cost
        self.exact_out = exact_out
        self.check_function: Function | None = None
        self.numbers_function: Function | None = None
        self.values_function: Function | None = None
        self.tensors = self.text.tensor_positions  # where a number may stand instead
        # Numbers that count in promotion: the operands of the mathematical function, not factors like alpha.
        self._operands = [
            i for i, name in enumerate(self.names) if name not in keep and (i in self.tensors or name in OPERANDS)
        ]
        # Numbers are rounded to a dtype of 16 bits as operands are, but where PyTorch computes with what was given.
        own = {self.names[i] for i in self._operands}
        self.rounds_numbers = bool(own & {"other", "exponent"}) and self.base_name not in ("mul", "div", "floor_divide")
        self.variants: tuple[Variant, ...] = ()  # the most specific first: the first that suits is used
        self.meta(self._pointwise_meta)
        self.body(self._pointwise_body)
        DECLARED.append(self)

    def scalar(self, body: Function | None = None, *, when: dict[str, Any] | None = None, **by_kind: Function) -> Any:
        """Gives the scalar function: as a decorator, or by the kind of dtype: `scalar(int=..., float=...)`.

        With `when`, it is used only for calls whose arguments have these values: `when={"alpha": 1}`.
        """
        if by_kind:
            self._add(by_kind, next(iter(by_kind.values())), when)
            return None
        if body is None:
            return lambda function: self.scalar(function, when=when)
        self._add(body, body, when)
        return body

    def check(self, function: Function) -> Function:
        """Registers what raises for arguments that the operator refuses, before anything else happens.

        It is asked once for arguments that look alike (Note [A plan for arguments that look alike]), so of numbers it
        may ask the type; `check_numbers` is for their values.
        """
        self.check_function = function
        self._forget()
        return function

    def check_numbers(self, function: Function) -> Function:
        """Registers what raises for numbers that the operator refuses, before anything else happens, at each call."""
        self.numbers_function = function
        self._forget()
        return function

    def check_values(self, function: Function) -> Function:
        """Registers what raises for elements that the operator refuses: asked last, and never on the meta device."""
        self.values_function = function
        self._forget()
        return function

    def _add(self, body: Any, example: Function, when: dict[str, Any] | None) -> None:
        parameters = example.__code__.co_varnames[: example.__code__.co_argcount]
        if example.__module__.startswith(MATHS):  # a function of one number serves many operators: by position
            parameters = tuple(self.names[: len(parameters)])
        unknown = [name for name in parameters if name not in self.names]
        if unknown:
            raise TypeError(
                f"{example.__qualname__} has a parameter {unknown[0]!r}, but {self.schema.name} has the arguments "
                f"{', '.join(self.names)}: a scalar function takes some of these, under the same names"
            )
        kept = [i for i, name in enumerate(parameters) if name in self.keep]
        loops = Elementwise(self.base_name, body, keep=kept, cost=self.cost)
        wanted = {self.names.index(name): value for name, value in (when or {}).items()}
        if any(i in self.tensors and value is not None for i, value in wanted.items()):
            raise TypeError(f"{example.__qualname__}: `when` names a tensor, and only a number or a word can decide")
        variant = Variant(wanted, [self.names.index(name) for name in parameters], loops, self.tensors)
        self.variants = tuple(sorted((*self.variants, variant), key=lambda variant: -len(variant.when)))
        self._forget()

    def _forget(self) -> None:
        """Drops what was made of the functions that stood here before."""
        self.forget_plans()
        for op in self.forms:
            op.forget_entries()

    def forget_plans(self) -> None:
        """Has all calls be decided again."""
        for variant in self.variants:
            variant.plans.clear()

    # The kernels that nearly every call runs -------------------------------------------------------------------------

    @leaf
    @inline
    def run_functional(self, *args: Any) -> Tensor:
        """The functional kernel."""
        for variant in self.variants:
            if variant.suits(args):
                plan = self.plan(variant, args)
                if self.values_function is not None:
                    self.values_function(*args)
                result = empty_from(plan.outputs[0])
                loop = plan.run
                if loop is None:
                    loop = plan.run = self.loop_into_fresh(variant, plan, result, args)
                run(loop, result._array, 0, self.operands(variant.positions, args))
                return result
        raise self.no_variant(args)

    @leaf
    @inline
    def run_inplace(self, *args: Any) -> Tensor:
        """The in-place kernel. Where an input may share memory with the target, `Structured` takes care of it."""
        target = args[0]
        for i in self.tensors:
            if i != 0 and self.is_tensor(args[i], i) and shares_memory(args[i], target):
                return self.run_inplace_unaliased(*args)
        for variant in self.variants:
            if variant.suits(args):
                plan = self.plan(variant, args)
                loop = plan.in_place
                if loop is None:
                    loop = plan.in_place = self.loop_in_place(variant, plan, args)
                if self.values_function is not None:
                    self.values_function(*args)
                if target._array is None:
                    raise no_memory(target)
                read = tuple(i for i in variant.positions if i != 0)  # the target is read through the output itself
                run(loop, target._array, target._offset, self.operands(read, args))
                return target
        raise self.no_variant(args)

    @leaf
    @inline
    def run_out(self, *args: Any) -> Tensor:
        """The out= kernel. The first call for an `out` of such metadata takes the slow path, and so do all
        whose inputs may share memory with it."""
        out, inputs = args[-1], args[:-1]
        for i in self.tensors:
            if self.is_tensor(inputs[i], i) and shares_memory(inputs[i], out):
                return self.run_out_slow(*args)
        for variant in self.variants:
            if variant.suits(inputs):
                plan = self.plan(variant, inputs)
                loop = plan.into.get(out._interned or metadata_of(out))
                if loop is None or out._array is None:
                    return self.run_out_first(variant, plan, args)
                if self.values_function is not None:
                    self.values_function(*inputs)
                run(loop, out._array, out._offset, self.operands(variant.positions, inputs))
                return out
        raise self.no_variant(inputs)

    @inline
    def plan(self, variant: Variant, args: tuple[Any, ...]) -> PointwisePlan:
        """The decided call: Note [A plan for arguments that look alike]."""
        if self.numbers_function is not None:
            self.numbers_function(*args)
        facts = self.facts(args)
        plan = variant.plans.get(facts)
        if plan is None:
            plan = self.new_plan(variant, facts, args)
        return plan

    @inline
    def operands(self, positions: tuple[int, ...], args: tuple[Any, ...]) -> list[Any]:
        """The arguments at these positions as loops take them: a tensor as its array and offset, a number as itself."""
        values: list[Any] = []
        for i in positions:
            value = args[i]
            if self.is_tensor(value, i):
                array = value._array
                if array is None:
                    raise no_memory(value)
                values += (array, value._offset)
            else:
                values.append(value)
        return values

    # Deciding --------------------------------------------------------------------------------------------------------

    def new_plan(self, variant: Variant, facts: tuple[Any, ...], args: tuple[Any, ...]) -> PointwisePlan:
        """The plan for arguments that look so for the first time."""
        default = get_default_dtype()
        if self.check_function is not None:
            self.check_function(*args)
        self.common(args)
        tensors = [args[i] for i in self.schema.tensor_positions if isinstance(args[i], Tensor)]
        shape = tensors[0]._shape
        rank = len(shape)  # is asked first: whether (u0, 1) is (2,) is no question of what u0 is
        if any(len(tensor._shape) != rank or tensor._shape != shape for tensor in tensors):
            shape = Size(broadcast_shapes(*(tensor._shape for tensor in tensors)))
        compute, result = self._dtypes(args)
        layouts = [(tensor._shape, tensor._stride) for tensor in tensors]
        # A number in the place of an operand counts as a tensor without dimensions; a bound or an exponent does not.
        numbers = [i for i in self._operands if self.names[i] == "other" and not isinstance(args[i], Tensor)]
        layouts += [((), ())] * len(numbers)
        meta = Meta(shape, result, common_device(*tensors), output_strides(shape, tuple(layouts)))
        spec = output_spec(shape, result, meta.device, meta.strides)
        plan = PointwisePlan((spec,), None, meta, compute.name, fit_of(compute, self.rounds_numbers))
        remember(variant, facts, plan, default)
        return plan

    def _dtypes(self, args: tuple[Any, ...]) -> tuple[dtype, dtype]:
        """(the dtype in which elements are computed, that of the result)"""
        common, promotion = self.computed_in(args), self.promotion_of(args)
        reason = self.refuses.get(common.name)
        if isinstance(reason, str) and reason:
            raise not_implemented(reason, common)
        if promotion == "compare":
            return common, dtypes.bool
        if promotion == "complex":
            return common, common.to_complex()
        return common, common.to_real() if promotion == "real" else common

    def promotion_of(self, args: tuple[Any, ...]) -> str:
        return self.promotion if isinstance(self.promotion, str) else self.promotion(*args)

    def computed_in(self, args: tuple[Any, ...]) -> dtype:
        """The dtype in which elements are computed. Raises what the operator has against the inputs' common one."""
        common = self.common(args)
        if self.promotion_of(args) == "float" and common.category < get_default_dtype().category:
            return get_default_dtype()
        return common

    def common(self, args: tuple[Any, ...]) -> dtype:
        """The inputs' common dtype. Raises the exception that the operator has for it, if it has one."""
        common = result_type(*(args[i] for i in self._operands if args[i] is not None))
        self._refuse(common)
        return common

    def _refuse(self, element: dtype) -> None:
        """Raises the exception that the operator has for a dtype, if it has one."""
        reason = self.refuses.get(element.name)
        if isinstance(reason, Exception):
            raise type(reason)(*reason.args)  # a new one: each carries its own traceback

    def loop_into_fresh(self, variant: Variant, plan: PointwisePlan, result: Tensor, args: tuple[Any, ...]) -> Loop:
        """The loop for results with memory of their own. It is compiled here, if it must be."""
        loop = variant.loops.loop((result._operand,), loop_inputs(variant, plan, args), plan.compute)
        return loop if plan.fit is None else fitting(loop, plan.fit, variant.positions, args)

    def loop_in_place(self, variant: Variant, plan: PointwisePlan, args: tuple[Any, ...]) -> Loop:
        """The loop into the first argument. RuntimeError where what it would store does not fit there."""
        target = args[0]
        if self.promotion == "real" and target._dtype.is_complex:
            raise RuntimeError(f"In-place {self.schema.base_name} is not supported for complex tensors.")
        check_writable(target, plan.meta)
        check_no_internal_overlap(target)
        loop = variant.loops.loop((target._operand,), loop_inputs(variant, plan, args), plan.compute)
        read = tuple(i for i in variant.positions if args[i] is not target)
        return loop if plan.fit is None else fitting(loop, plan.fit, read, args)

    # Meta and body: the meta device, out=, and writing over inputs ---------------------------------------------------

    def run_inplace_unaliased(self, *args: Any) -> Tensor:
        """The in-place kernel for inputs that may share memory with the target."""
        target = args[0]
        tensors = [args[i] for i in self.tensors if self.is_tensor(args[i], i)]
        if any(x is not target and shares_memory(x, target) for x in tensors) or target._array is None:
            return super().run_inplace(*args)
        variant = self.variant(args)
        plan = self.plan(variant, args)
        read = tuple(i for i in variant.positions if args[i] is not target)  # the others through the output itself
        loop = plan.onto_itself.get(read)
        if loop is None:
            loop = plan.onto_itself[read] = self.loop_in_place(variant, plan, args)
        if self.values_function is not None:
            self.values_function(*args)
        run(loop, target._array, target._offset, self.operands(read, args))
        return target

    def run_out_first(self, variant: Variant, plan: PointwisePlan, args: tuple[Any, ...]) -> Tensor:
        """The out= kernel for the first `out` of such metadata. Its loop is remembered if it was not
        resized."""
        out, metadata = args[-1], metadata_of(args[-1])
        self.run_out_slow(*args)
        if out._array is not None and metadata_of(out) is metadata and not narrowed(plan, out):
            loop = variant.loops.loop((out._operand,), loop_inputs(variant, plan, args), plan.compute)
            plan.into[metadata] = loop if plan.fit is None else fitting(loop, plan.fit, variant.positions, args)
        return out

    def run_out_slow(self, *args: Any) -> Tensor:
        """The out= kernel for any arguments."""
        self.check_exact_out(args)
        return super().run_out(*args)

    def check_exact_out(self, args: tuple[Any, ...]) -> None:
        """RuntimeError where `out=` has another dtype than the result, and the operator converts nothing on the way."""
        if self.exact_out:
            if self.check_function is not None:
                self.check_function(*args[:-1])
            expected, found = self._dtypes(args[:-1])[1], args[-1]._dtype
            self._refuse(found)
            if found is not expected:
                said = self.exact_out if isinstance(self.exact_out, str) else "Found dtype {0} but expected {1}"
                raise RuntimeError(said.format(found.tensor_name, expected.tensor_name))

    def _pointwise_meta(self, *args: Any) -> Meta:
        return self.plan(self.variant(args), args).meta

    def _pointwise_body(self, out: Tensor, *args: Any) -> None:
        variant = self.variant(args)
        plan = self.plan(variant, args)
        if narrowed(plan, out):
            copy(out._operand, self.run_functional(*args)._operand)
            return
        if self.values_function is not None:
            self.values_function(*args)
        variant.loops.run(out._operand, *loop_inputs(variant, plan, args), dtype=plan.compute)

    def variant(self, args: tuple[Any, ...]) -> Variant:
        """The scalar function that serves a call."""
        for variant in self.variants:
            if variant.suits(args):
                return variant
        raise self.no_variant(args)

    def no_variant(self, args: tuple[Any, ...]) -> Exception:
        """Returns the error for arguments that no scalar function serves: what the operator has against them."""
        if self.check_function is not None:
            self.check_function(*args)
        passed = ", ".join(map(describe_value, args))
        conditions = [{self.names[i]: value for i, value in variant.when} for variant in self.variants]
        known = " or ".join(str(when or "any arguments") for when in conditions) or "nothing yet"
        return RuntimeError(
            f"{self.schema.name}({passed}) has no scalar function: there is one for {known}. Declare it: "
            f"@{self.schema.base_name}_op.scalar"
        )


@inline
def shares_memory(tensor: Any, target: Any) -> bool:
    """Whether two tensors may show the same memory. Note [Storages are made when they are asked for]."""
    one_store = tensor._store is not None and tensor._store is target._store
    return tensor is target or one_store or tensor._array is target._array is not None


@inline
def run(loop: Loop, out: Any, at: int, values: list[Any]) -> None:
    """Runs a loop, from element `at` of the output on."""
    entry = loop.entry
    if entry is None:
        loop.run(out, at, *values)
    else:
        entry(0, loop.numel, out, at, *values)


def loop_inputs(variant: Variant, plan: PointwisePlan, args: tuple[Any, ...]) -> list[Any]:
    """The arguments as loops are chosen by them: a tensor as its operand, a number as itself."""
    fit = plan.fit or as_it_is
    return [args[i]._operand if isinstance(args[i], Tensor) else fit(args[i]) for i in variant.positions]


def narrowed(plan: PointwisePlan, out: Tensor) -> bool:
    """Whether results have a narrower dtype than loops compute in, and `out` another one: they wrap, or are rounded,
    before they go there."""
    made = plan.meta.dtype
    return out._dtype is not made and made.name not in AS_COMPUTED


def as_it_is(number: Any) -> Any:
    return number


def fit_of(compute: dtype, rounds: bool) -> Callable[[Any], Any] | None:
    """The conversion of Python numbers for loops that compute in this dtype; None where they do as they are."""
    if rounds and compute.category == dtypes.FLOATING and compute.itemsize < 4:
        return partial(rounded, compute.numpy.type)
    if compute.category != dtypes.INTEGER:
        return None
    if compute.itemsize == 8:
        return as_long
    return partial(wrapped, 8 * compute.itemsize, compute.is_signed)


@lru_cache(4096)  # 0 and -0 are equal, and not told apart: they stay as they are
def _rounded(kind: Any, number: Any) -> float:
    with np.errstate(over="ignore"):  # it is infinite then
        return float(kind(number))


def rounded(kind: Any, number: Any) -> float:
    """A Python number as one of few bits has it."""
    return _rounded(kind, number) if number else float(number)


def wrapped(bits: int, signed: bool, number: Any) -> Any:
    """A Python number for a narrow integer: one that is too large wraps, as in PyTorch."""
    if type(number) is not int:
        return number
    low = number & ((1 << bits) - 1)
    return low - (1 << bits) if signed and low >> (bits - 1) else low


def as_long(number: Any) -> Any:
    """A Python number for int64: an unsigned one of 64 bits wraps."""
    if type(number) is not int or -(2**63) <= number < 2**63:
        return number
    if number >= 2**64:
        raise OverflowError("int too big to convert")
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    return number - 2**64


def fitting(loop: Loop, fit: Callable[[Any], Any], positions: tuple[int, ...], args: tuple[Any, ...]) -> Loop:
    """The loop, which takes its operands as `operands` gives them, with the numbers among these made to fit."""
    places, at = [], 2  # behind the output and its offset
    for i in positions:
        if isinstance(args[i], Tensor):
            at += 2
        else:
            places.append(at)
            at += 1

    only = places[0] if len(places) == 1 else 0

    def fitted(*values: Any) -> None:
        if only == len(values) - 1:  # as of most
            loop.run(*values[:-1], fit(values[-1]))
            return
        given = list(values)
        for place in places:
            given[place] = fit(given[place])
        loop.run(*given)

    def fitted_if_need_be(*values: Any) -> None:
        try:
            loop.run(*values)
        except OverflowError:  # a number of more than 63 bits: seldom, so that to look at each would be dear
            fitted(*values)

    return Loop(None, loop.numel, fitted_if_need_be if fit is as_long else fitted) if places else loop


def pointwise(schema: str, **facts: Any) -> Pointwise:
    """Declares a pointwise operator whose functions and derivative follow; operator.py says all at once."""
    return Pointwise(schema, **facts)
