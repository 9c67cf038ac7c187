"""assert_close: whether two tensors are the same up to rounding, and if not, where and by how much.

Source of the tolerances: PyTorch's `torch.testing.assert_close`; |actual - expected| <= atol + rtol * |expected|.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtype, shown
from redispatch.kernels.ops.from_data import tensor

# (relative, absolute) by dtype; every other dtype must be equal
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def default_tolerances(*dtypes: dtype) -> tuple[float, float]:
    """(rtol, atol) for values of these dtypes: the most forgiving of each."""
    found = [TOLERANCES.get(one.name, (0.0, 0.0)) for one in dtypes]
    return max(rtol for rtol, _ in found), max(atol for _, atol in found)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises AssertionError unless `actual` and `expected` are close: tensors, numbers, None, sequences or mappings.

    rtol, atol: given together or not at all; by default those of the dtypes (TOLERANCES). Shape, and where checked
    dtype, device, layout and strides must be equal. equal_nan: whether a NaN equals a NaN. msg: a text for the error,
    or a function of ours that gives one.
    Errors: ValueError for one tolerance without the other; TypeError for values that cannot be compared.

    >>> import redispatch as rd
    >>> from redispatch.testing import assert_close
    >>> assert_close(rd.ones(2), rd.ones(2) + 1e-7)
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"rtol and atol must both be specified or both be unspecified, but got {rtol=} and {atol=} instead."
        )
    checks = {"device": check_device, "dtype": check_dtype, "layout": check_layout, "stride": check_stride}
    problem = difference(actual, expected, Rules(rtol, atol, equal_nan, checks, allow_subclasses))
    if problem:
        raise AssertionError(msg(problem) if callable(msg) else msg or problem)


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The former `assert_close`: it makes tensors of what it is given, and is more forgiving of float32 and float64."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, Tensor) else tensor(actual)
    expected = expected if isinstance(expected, Tensor) else tensor(expected, dtype=actual._dtype)
    if rtol is None and atol is None:
        found = [FORMER_TOLERANCES.get(x._dtype.name) or default_tolerances(x._dtype) for x in (actual, expected)]
        rtol, atol = max(rtol for rtol, _ in found), max(atol for _, atol in found)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


FORMER_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


@dataclass(frozen=True)
class Rules:
    """The bounds of closeness: see `assert_close`. checks: which attributes must be equal."""

    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    checks: Mapping[str, bool] = field(default_factory=dict)
    allow_subclasses: bool = True

    def tolerances(self, default: tuple[float, float]) -> tuple[float, float]:
        return default if self.rtol is None or self.atol is None else (self.rtol, self.atol)


def difference(actual: Any, expected: Any, rules: Rules, where: str = "") -> str:
    """Returns the difference in words; empty where there is none."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"The keys of the mappings do not match: {list(actual)} != {list(expected)}"
        pairs = [(key, actual[key], expected[key]) for key in expected]
    elif isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at(where)}"
        pairs = [(i, a, e) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    else:
        return leaf_difference(actual, expected, rules, where)
    found = (difference(a, e, rules, f"{where}[{key!r}]") for key, a, e in pairs)
    return next((problem for problem in found if problem), "")


def leaf_difference(actual: Any, expected: Any, rules: Rules, where: str) -> str:
    if actual is None and expected is None:
        return ""
    if all(isinstance(one, np.ndarray) and one.dtype.kind in "biufc" for one in (actual, expected)):
        actual, expected = tensor(actual), tensor(expected)
    if isinstance(actual, Tensor) and isinstance(expected, Tensor):
        if not rules.allow_subclasses and type(actual) is not type(expected):
            return f"Except for the type of tensors, which is {type(actual)} and {type(expected)}, subclasses differ"
        default = default_tolerances(actual.dtype, expected.dtype)
        return attribute_difference(actual, expected, rules.checks, where) or value_difference(
            values(actual), values(expected), *rules.tolerances(default), rules.equal_nan, where, "Tensor-likes"
        )
    if isinstance(actual, bool) and isinstance(expected, bool):
        return "" if actual == expected else f"Booleans mismatch: {actual} is not {expected}{at(where)}"
    if isinstance(actual, int | float | complex) and isinstance(expected, int | float | complex):
        return number_difference(actual, expected, rules, where)
    if type(actual) is type(expected) and not isinstance(actual, Tensor | np.ndarray):
        return "" if actual == expected else f"Objects are not equal: {actual!r} != {expected!r}{at(where)}"
    raise TypeError(
        f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.{at(where)}"
    )


def attribute_difference(actual: Tensor, expected: Tensor, checks: Mapping[str, bool], where: str) -> str:
    """The first attribute in which the tensors differ."""
    facts = [("shape", "shape", tuple(actual.shape), tuple(expected.shape))]
    for name in ("layout", "device", "dtype"):
        facts.append((name, name, getattr(actual, name), getattr(expected, name)))
    facts.append(("stride", "stride()", actual.stride(), expected.stride()))
    for name, asked, mine, other in facts:
        if checks.get(name, True) and mine != other:
            return f"The values for attribute '{asked}' do not match: {mine} != {other}.{at(where)}"
    return ""


def values(tensor: Tensor) -> np.ndarray:
    """The values, in a numpy dtype that can compute with them: 16-bit floats are widened."""
    if tensor.device.type == "meta":
        raise ValueError("Comparing meta tensors is not supported: they have no values")
    found = shown(tensor.detach())
    return found.astype(np.float32) if tensor.dtype.is_floating_point and tensor.dtype.itemsize <= 2 else found


def value_difference(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool, where: str, what: str
) -> str:
    """Tells how many values are not close, and where the greatest differences are."""
    wrong = ~close(actual, expected, rtol, atol, equal_nan)
    if not wrong.any():
        return ""
    count, total = int(wrong.sum()), wrong.size
    kind = "equal" if rtol == atol == 0 else "close"
    with np.errstate(all="ignore"):
        wide = np.complex128 if np.iscomplexobj(actual) or np.iscomplexobj(expected) else np.float64
        a, e = actual.astype(wide), expected.astype(wide)
        absolute = np.where(wrong, np.abs(a - e), 0)
        relative = np.where(wrong, absolute / np.abs(e), 0)
    lines = [f"{what} are not {kind}!{at(where)}", ""]
    lines.append(f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)")
    for name, amounts, allowed in (("absolute", absolute, atol), ("relative", relative, rtol)):
        index = worst(amounts)
        limit = f" (up to {allowed:g} allowed)" if kind == "close" else ""
        lines.append(
            f"Greatest {name} difference: {amounts[index]:g} at index {tuple(map(int, index))}{limit}: "
            f"{actual[index]} instead of {expected[index]}"
        )
    return "\n".join(lines)


def worst(amounts: np.ndarray) -> tuple[Any, ...]:
    """The index of the greatest amount; a NaN is the greatest."""
    return np.unravel_index(int(np.argmax(np.where(np.isnan(amounts), np.inf, amounts))), amounts.shape)


def close(actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    """Element by element, whether the values are close. Equal ones are, infinities among them."""
    with np.errstate(all="ignore"):
        same = np.asarray(actual == expected)
        if (rtol or atol) and actual.dtype != bool:
            if actual.dtype.kind == "u":  # a difference has a sign
                actual, expected = actual.astype(np.float64), expected.astype(np.float64)
            near = np.abs(actual - expected) <= atol + rtol * np.abs(expected)
            same = same | (np.isfinite(expected) & np.isfinite(actual) & near)
    if equal_nan:
        same = same | (np.isnan(actual) & np.isnan(expected))
    return same


def number_difference(actual: complex, expected: complex, rules: Rules, where: str) -> str:
    """Returns the difference of Python numbers in words: floats as float64, whole numbers exactly."""
    inexact = isinstance(actual, float | complex) and not isinstance(actual, int)
    inexact = inexact or (isinstance(expected, float | complex) and not isinstance(expected, int))
    rtol, atol = rules.tolerances(TOLERANCES["float64"] if inexact else (0.0, 0.0))
    if close(np.asarray(actual), np.asarray(expected), rtol, atol, rules.equal_nan):
        return ""
    gap = abs(actual - expected)
    if not rtol and not atol:
        return f"Scalars are not equal!{at(where)}\n\nExpected {expected} but got {actual}.\nAbsolute difference: {gap}"
    share = gap / abs(expected) if expected else float("inf")
    return (
        f"Scalars are not close!{at(where)}\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {gap} (up to {atol} allowed)\nRelative difference: {share} (up to {rtol} allowed)"
    )


def at(where: str) -> str:
    return f"\nThe failure occurred for item {where}" if where else ""
