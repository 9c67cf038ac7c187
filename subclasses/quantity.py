"""Quantity: numbers with a unit, which operators check and combine.

    length, time = Quantity(rd.tensor([3.0]), "m"), Quantity(rd.tensor([2.0]), "s")
    length / time               # [1.5] m/s
    length + time               # UnitError: ... cannot add m and s

What it teaches: a handler may hold facts about values without holding more values, and refuse what makes no sense.
Rules come in families: what adds wants equal units, what multiplies combines them, what is linear keeps them. Every
other operator wants pure numbers, of which it makes pure numbers whatever it is: an exponential, a convolution. With
units it is refused, since a unit lost in silence is worse than an error. Nothing is said about gradients, and they are
right: backward runs the same operators on the same wrappers, so that the gradient of joules by metres comes in newtons.
How serious it is: useful for checking a program's physics once; units are symbols, none is converted into another
(kilometres are not a thousand metres).

Read next: logging_tensor.py, for the least that such a wrapper needs; masked.py, for gradients that need help.
"""

from __future__ import annotations

import re
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .wrapper import face_of

aten = rd.ops.aten


class UnitError(TypeError):
    """An operator got units that make no sense to it. Fields: `op`, the operator; `units`, those of its arguments."""

    def __init__(self, message: str, op: Any, units: list[Unit]) -> None:
        super().__init__(message)
        self.op, self.units = op, units


class Unit(dict[str, float]):
    """A product of powers of symbols: metres by seconds squared are `Unit("m/s^2")`; without symbols, a pure number.

    Errors: ValueError for a text that is not of the form `a*b^2/c`.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        if not text:
            return
        if not re.fullmatch(r"(1|[^\W\d]+(\^-?[\d.]+)?)([*/][^\W\d]+(\^-?[\d.]+)?)*", text):
            raise ValueError(f"Unit: cannot read {text!r}; write it as products and powers, such as kg*m/s^2")
        for sign, symbol, _, power in re.findall(r"(^|[*/])([^\W\d]+)(\^(-?[\d.]+))?", text):
            exponent = float(power or 1)
            self[symbol] = self.get(symbol, 0) + (-exponent if sign == "/" else exponent)
        self._forget_zeros()

    def _forget_zeros(self) -> None:
        for symbol in [symbol for symbol, power in self.items() if power == 0]:
            del self[symbol]

    def __mul__(self, other: Unit) -> Unit:
        product = Unit()
        product.update({symbol: self.get(symbol, 0) + other.get(symbol, 0) for symbol in [*self, *other]})
        product._forget_zeros()
        return product

    def __pow__(self, exponent: float) -> Unit:
        result = Unit()
        result.update({symbol: power * exponent for symbol, power in self.items()})
        result._forget_zeros()
        return result

    def __truediv__(self, other: Unit) -> Unit:
        return self * other**-1

    def __str__(self) -> str:
        def powers(sign: int) -> str:
            chosen = sorted((symbol, sign * power) for symbol, power in self.items() if sign * power > 0)
            return ("*" if sign > 0 else "/").join(s if p == 1 else f"{s}^{p:g}" for s, p in chosen)

        above, below = powers(1), powers(-1)
        return f"{above or 1}/{below}" if below else above or "1"


class Quantity(rd.Tensor):
    """`value` counted in `unit`, a Unit or the text of one. What is plain, tensor or number, is a pure number.

    Requires grad where `value` does; the graph is then the wrapper's. `x.value` is the plain tensor without the unit.

    >>> import redispatch as rd
    >>> from redispatch.subclasses import Quantity
    >>> Quantity(rd.tensor([6.0]), "m") / Quantity(rd.tensor([2.0]), "s")
    Quantity([3.0] m/s)
    """

    value: rd.Tensor
    unit: Unit

    @staticmethod
    def __new__(cls: type, value: rd.Tensor, unit: Unit | str = "") -> Any:
        return face_of(cls, value)

    def __init__(self, value: rd.Tensor, unit: Unit | str = "") -> None:
        self.value = value.detach() if value.requires_grad else value
        self.unit = Unit(unit) if isinstance(unit, str) else unit

    def __repr__(self) -> str:
        return f"Quantity({self.value.tolist()} {self.unit})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The name of the inner tensor, and the unit."""
        return ["value"], str(self.unit)

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, rd.Tensor], unit: str, size: Any, stride: Any) -> Quantity:
        """The wrapper around another value in the same unit."""
        return Quantity(inner["value"], unit)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        unit = unit_of_result(func, args, kwargs)
        if func._schema.is_mutable and unit is not None:
            check_written(func, args, kwargs, unit)
        plain_args, plain_kwargs = pytree.tree_map_only(Quantity, lambda x: x.value, (args, kwargs))
        result = func(*plain_args, **plain_kwargs)
        if unit is not None:
            result = pytree.tree_map_only(rd.Tensor, lambda x: cls(x, unit), result)
        return return_and_correct_aliasing(func, args, kwargs, result)


def unit_of(value: Any) -> Unit:
    return value.unit if isinstance(value, Quantity) else Unit()


def unit_of_result(func: Any, args: Any, kwargs: Any) -> Unit | None:
    """The unit of the result; None where it is plain, as that of a comparison.

    Errors: UnitError where units do not fit; NotImplementedError for an operator of no family on what has a unit.
    """
    name = func._schema.name.removeprefix("aten::").rstrip("_")
    units = [unit_of(x) for x in pytree.tree_leaves((args, kwargs))]
    if name in SAME or name in COMPARE:
        # Factors that are no summands, such as alpha, are keyword arguments, and a condition is counted in nothing.
        summands = pytree.tree_leaves(args[1:] if name == "where" else args[: SAME.get(name, 2)])
        units = [unit_of(x) for x in summands if not is_zero(x)]
        if any(unit != units[0] for unit in units):
            different = sorted({str(unit) for unit in units})
            raise UnitError(
                f"{func}: cannot {name} {' and '.join(different)}; convert one of them, as by x * Quantity(rd.tensor("
                "0.01), 'm/cm'), or wrap what is plain in Quantity(x, unit)",
                func,
                units,
            )
        return None if name in COMPARE else units[0] if units else Unit()
    if name in PRODUCTS:
        return units[0] * units[1]
    if name in {"div", "true_divide"}:
        return units[0] / units[1]
    if name in POWERS:
        return units[0] ** POWERS[name]
    if name == "pow" and not units[1] and isinstance(args[1], int | float):
        return units[0] ** args[1]
    if name in LINEAR:
        return units[0]
    if name in FRESH:
        return Unit()
    if not any(units):
        return Unit()  # of pure numbers, whatever it is
    if name in PURE or name == "pow":
        raise UnitError(
            f"{func}: expected pure numbers, but got {', '.join(map(str, units))}; divide by a Quantity of the "
            "same unit first",
            func,
            units,
        )
    raise NotImplementedError(
        f"{func}: Quantity does not know what it does to units; run it on x.value and say the unit of the result"
    )


def is_zero(value: Any) -> bool:
    """Whether it is the number zero, the only one that is the same in every unit."""
    return isinstance(value, int | float) and value == 0


def check_written(func: Any, args: Any, kwargs: Any, unit: Unit) -> None:
    """Raises UnitError where the result does not have the unit of the tensor that it is written to."""
    target = kwargs.get("out", args[0])
    if unit_of(target) != unit:
        raise UnitError(
            f"{func}: the result is in {unit}, but the tensor that it is written to in {unit_of(target)}; take the "
            "form that is not in place",
            func,
            [unit_of(target), unit],
        )


# With the unit "" everything works; with another what is of no family, or of one that wants pure numbers, does not.
NOT_SUPPORTED: dict[str, str] = {}

# The families. A number says how many arguments must agree; the rest are counts, dimensions or bounds.
SAME = {"add": 2, "sub": 2, "maximum": 2, "minimum": 2, "cat": 1, "stack": 1, "where": 3, "copy": 2, "clamp": 3} | {
    "fill": 2,
    "rsub": 2,
    "clamp_min": 2,
    "clamp_max": 2,
    "fmod": 2,
    "remainder": 2,
}
COMPARE = {"eq", "ne", "lt", "le", "gt", "ge", "equal"}
PRODUCTS = {"mul", "mm", "bmm", "mv", "dot", "matmul", "outer"}
POWERS = {"sqrt": 0.5, "rsqrt": -0.5, "reciprocal": -1, "square": 2, "var": 2}
PURE = {"exp", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "asin", "acos"}
FRESH = {"ones_like", "sign", "sgn", "isnan", "isinf", "isfinite"}
LINEAR = {
    *("neg", "abs", "sum", "mean", "amax", "amin", "std", "clone", "detach", "alias", "view", "_unsafe_view", "expand"),
    *("t", "transpose", "permute", "select", "slice", "squeeze", "unsqueeze", "split", "unbind", "index", "flip"),
    *(
        "cumsum",
        "relu",
        "conj",
        "_to_copy",
        "zeros_like",
        "zero",
        "select_backward",
        "slice_backward",
        "_reshape_alias",
    ),
}
