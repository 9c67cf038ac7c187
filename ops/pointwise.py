"""Pointwise operators: from what happens to one element to all forms of an operator.

The scalar function's parameters are named like the schema's arguments; tensors come as their elements, numbers as they
are. Shapes broadcast, strides follow the inputs', and `promotion` says in which dtype elements are computed and stored:

    same     the inputs' common dtype                     add, mul, neg
    float    the same, integers as the default float      exp, div, sigmoid
    compare  computed in the common dtype, stored as bool eq, lt, logical_and
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from redispatch.dispatch import describe_value
from redispatch.kernels import Elementwise, Launch, broadcast_shapes, output_strides, parallel_for
from redispatch.tensor import (
    Size,
    Tensor,
    dtype,
    dtypes,
    fresh,
    get_default_dtype,
    no_memory,
    result_type,
    storage_elements,
)

from .declare import Function
from .structured import Meta, Structured, common_device

PLANS = 2048  # remembered per operator; then it starts afresh
OPERANDS = ("self", "other", "exponent", "min", "max")


@dataclass(slots=True)
class Plan:
    """A decided call: what the result looks like, which arguments the loops take, in which dtype they compute.

    `launch` is the loop itself, with a result of its own memory; it is chosen, and compiled, by the first such call.
    """

    meta: Meta
    elements: int  # of the result's storage
    positions: list[int]
    loops: Elementwise
    compute: str
    bits: int  # of a number in the compute dtype, where that is an integer narrower than Python may pass; else 0
    signed: bool
    launch: Launch | None = None

    def fitted(self, number: Any) -> Any:
        """A Python number as the loop takes it: an int too large for a narrow integer dtype wraps, as in PyTorch."""
        if not self.bits or type(number) is not int:
            return number
        wrapped = number & ((1 << self.bits) - 1)
        return wrapped - (1 << self.bits) if self.signed and wrapped >> (self.bits - 1) else wrapped


class Pointwise(Structured):
    """A structured operator whose meta and body follow from scalar functions.

    promotion: one of the words above, or a function of the arguments that gives one.
    keep: arguments that keep their own dtype, such as the condition of `where`.
    unsupported: dtypes without a kernel, and the kernel's name in PyTorch's message.
    exact_out: whether `out=` must have the result's very dtype.
    cost: of one element, in cheap operations.
    """

    elementwise = True
    kind = "pointwise"

    def __init__(
        self,
        schema: str,
        *,
        promotion: str | Callable[..., str] = "same",
        keep: tuple[str, ...] = (),
        unsupported: dict[str, str] | None = None,
        cost: int = 1,
        exact_out: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(schema, tags=("pointwise",), **options)
        self.promotion, self.keep, self.cost = promotion, keep, cost
        self.unsupported = unsupported or {}
        self.exact_out = exact_out
        self.check_function: Function | None = None
        self.values_function: Function | None = None
        # Numbers that count in promotion: the operands of the mathematical function, not factors like alpha.
        self._operands = [
            i
            for i, name in enumerate(self.names)
            if name not in keep and (i in self.schema.tensor_positions or name in OPERANDS)
        ]
        # (condition on arguments, parameter positions, loops): the first whose condition holds is used
        self._variants: list[tuple[dict[str, Any], list[int], Elementwise]] = []
        self._decisive: set[str] = set()  # arguments whose value decides, not only their type
        self._plans: dict[tuple[Any, ...], Plan] = {}
        self.meta(self._pointwise_meta)
        self.body(self._pointwise_body)

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
        """Registers what raises for arguments that the operator refuses, before anything else happens."""
        self.check_function = function
        return function

    def check_values(self, function: Function) -> Function:
        """Registers what raises for elements that the operator refuses: asked last, and never on the meta device."""
        self.values_function = function
        return function

    def _add(self, body: Any, example: Function, when: dict[str, Any] | None) -> None:
        parameters = example.__code__.co_varnames[: example.__code__.co_argcount]
        unknown = [name for name in parameters if name not in self.names]
        if unknown:
            raise TypeError(
                f"{example.__qualname__} has a parameter {unknown[0]!r}, but {self.schema.name} has the arguments "
                f"{', '.join(self.names)}: a scalar function takes some of these, under the same names"
            )
        positions = [self.names.index(name) for name in parameters]
        kept = [i for i, name in enumerate(parameters) if name in self.keep]
        loops = Elementwise(self.schema.base_name, body, keep=kept, cost=self.cost)
        self._variants.append((when or {}, positions, loops))
        self._decisive |= set(when or {})
        self._variants.sort(key=lambda variant: -len(variant[0]))  # the most specific first

    def _choose(self, args: tuple[Any, ...]) -> tuple[list[int], Elementwise]:
        for when, positions, loops in self._variants:
            if all(_equal(args[self.names.index(name)], value) for name, value in when.items()):
                return positions, loops
        passed = ", ".join(map(describe_value, args))
        known = " or ".join(str(when or "any arguments") for when, _, _ in self._variants) or "nothing yet"
        raise RuntimeError(
            f"{self.schema.name}({passed}) has no scalar function: there is one for {known}. Declare it: "
            f"@{self.schema.base_name}_op.scalar"
        )

    # Meta and body -----------------------------------------------------------------------------------------------

    def plan(self, args: tuple[Any, ...]) -> Plan:
        """What a call comes down to; remembered for all calls whose arguments look the same."""
        facts: list[Any] = [get_default_dtype()]
        for name, value in zip(self.names, args, strict=True):
            if isinstance(value, Tensor):
                facts += (value._dtype, value._shape, value._stride, value._device)
            else:
                facts.append(value if name in self._decisive else type(value))
        key = tuple(facts)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= PLANS:
                self._plans.clear()
            found = self._plans[key] = self._make_plan(args)
        return found

    def _make_plan(self, args: tuple[Any, ...]) -> Plan:
        tensors = [args[i] for i in self.schema.tensor_positions if isinstance(args[i], Tensor)]
        shape = tensors[0]._shape
        if any(tensor._shape != shape for tensor in tensors):
            shape = Size(broadcast_shapes(*(tensor._shape for tensor in tensors)))
        compute, result = self._dtypes(args)
        looks = [(tensor._shape, tensor._stride) for tensor in tensors]
        # A number in the place of an operand counts as a tensor without dimensions; a bound or an exponent does not.
        numbers = [i for i in self._operands if self.names[i] == "other" and not isinstance(args[i], Tensor)]
        looks += [((), ())] * len(numbers)
        strides = output_strides(shape, tuple(looks))
        meta = Meta(shape, result, common_device(*tensors), strides)
        bits = 8 * compute.itemsize if compute.category == dtypes.INTEGER and compute.itemsize < 8 else 0
        elements = storage_elements(shape, strides, result)
        return Plan(meta, elements, *self._choose(args), compute.name, bits, compute.is_signed)

    def _dtypes(self, args: tuple[Any, ...]) -> tuple[dtype, dtype]:
        """(the dtype in which elements are computed, that of the result)"""
        common = result_type(*(args[i] for i in self._operands if args[i] is not None))
        promotion = self.promotion if isinstance(self.promotion, str) else self.promotion(*args)
        if promotion == "float" and common.category < get_default_dtype().category:
            common = get_default_dtype()
        if common.name in self.unsupported:
            raise NotImplementedError(f"\"{self.unsupported[common.name]}\" not implemented for '{common.tensor_name}'")
        return common, dtypes.bool if promotion == "compare" else common

    def run_functional(self, *args: Any) -> Tensor:
        """The functional kernel, with the plan looked up once: this is the path that nearly every call takes."""
        if self.check_function is not None:
            self.check_function(*args)
        plan = self.plan(args)
        if self.values_function is not None:
            self.values_function(*args)
        meta = plan.meta
        result = fresh(meta.shape, meta.strides, plan.elements, meta.dtype, meta.device)  # type: ignore[arg-type]  # a Size
        launch = plan.launch
        if launch is None:
            launch = plan.launch = plan.loops.prepare((result._operand,), self._loop_inputs(plan, args), plan.compute)
        if launch.numel:
            values: list[Any] = [*launch.tables, result._array, 0]
            for position in plan.positions:
                value = args[position]
                if isinstance(value, Tensor):
                    if value._array is None:
                        raise no_memory(value)
                    values += (value._array, value._offset)
                else:
                    values.append(plan.fitted(value))
            parallel_for(launch.entry, launch.numel, tuple(values), self.cost)
        return result

    def run_out(self, *args: Any) -> Tensor:
        """The out= kernel; an `exact_out` operator converts nothing on the way."""
        if self.check_function is not None:
            self.check_function(*args[:-1])
        if self.exact_out:
            expected, found = self._dtypes(args[:-1])[1], args[-1]._dtype
            if found is not expected:
                raise RuntimeError(f"Found dtype {found.tensor_name} but expected {expected.tensor_name}")
        return super().run_out(*args)

    def _pointwise_meta(self, *args: Any) -> Meta:
        if self.check_function is not None:
            self.check_function(*args)
        return self.plan(args).meta

    def _pointwise_body(self, out: Tensor, *args: Any) -> None:
        plan = self.plan(args)
        if self.values_function is not None:
            self.values_function(*args)
        plan.loops.run(out._operand, *self._loop_inputs(plan, args), dtype=plan.compute)

    def _loop_inputs(self, plan: Plan, args: tuple[Any, ...]) -> list[Any]:
        return [args[i]._operand if isinstance(args[i], Tensor) else plan.fitted(args[i]) for i in plan.positions]


def _equal(value: Any, wanted: Any) -> bool:
    return not isinstance(value, Tensor) and value == wanted


def pointwise(schema: str, **options: Any) -> Pointwise:
    """Declares a pointwise operator; see Pointwise and Operator for the options."""
    return Pointwise(schema, **options)
