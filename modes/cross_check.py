"""CrossCheckMode: runs each operator also in float64, or on another device, and reports errors beyond a tolerance.

    with CrossCheckMode():
        model(x)                        # AccuracyError: aten.sum.default(f32[4096]) is off by 3.1e-04 …
    with CrossCheckMode(device="mine"):
        model(x)                        # every operator, there and here, by the same inputs

What it teaches: how to find the operator that is wrong, where the whole is. Comparing two runs of a program compares
everything that came before, too; comparing operator by operator, with the program's own values as the inputs of both,
each error stands alone. It is measured against the largest element of the reference result, and not element by
element: of 1e8 + 1 - 1e8 no float32 knows the difference, and that is nobody's fault. How serious it is: for the
porting of kernels and the choice of dtypes; it doubles the time and more.

Read next: frontend/testing/comparison.py, for `assert_close`; determinism.py.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _disable_current_modes
from redispatch.utils.text import text_table

from .findings import FindingMode, is_uninitialized, tensors_with_data
from .logging_mode import call_text

WIDE = {False: rd.float64, True: rd.complex128}  # by whether numbers are complex
ROUNDINGS = 16  # a result may be this many units in the last place of its largest element away


class AccuracyError(ArithmeticError):
    """An operator is further from the reference than it may. func: the operator; error, tolerance: relative."""

    def __init__(self, message: str, func: Any, error: float, tolerance: float) -> None:
        super().__init__(message)
        self.func, self.error, self.tolerance = func, error, tolerance


class CrossCheckMode(FindingMode):
    """A region in which each operator has a witness.

    device: where the witness runs; by default, where the operator does. wide: whether it computes in float64 and
    complex128; without, in the same dtypes, which makes sense with a device only. tolerance: the largest relative error
    (largest difference by largest element of the reference); by default, 16 times the dtype's eps.
    Results: `errors`, the largest one by operator; `skipped`, calls without a witness, by operator and reason;
    `get_table()`.
    Not checked: random operators, views, uninitialised results, integers, and where no input or result has fewer bits
    than the witness. The witness works on copies. action: "raise", "warn" or "record".
    Errors: ValueError where the witness would do the same as the operator.
    """

    def __init__(
        self, *, device: Any = None, wide: bool = True, tolerance: float | None = None, action: str = "raise"
    ) -> None:
        super().__init__(action)
        if device is None and not wide:
            raise ValueError("CrossCheckMode: wide=False runs each operator twice in the same way; pass a device, too")
        self.device = None if device is None else rd.device(device)
        self.wide, self.tolerance = wide, tolerance
        self.errors: dict[str, float] = {}
        self.calls: Counter[str] = Counter()
        self.skipped: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> CrossCheckMode:
        self.errors.clear()
        self.calls.clear()
        self.skipped.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        reason = self.reason_to_skip(func, args, kwargs)
        if reason:
            self.skipped[str(func), reason] += 1
            return func(*args, **kwargs)
        call = call_text(func, args, kwargs)
        with _disable_current_modes():  # before the call, which may write its arguments
            expected = self.witness(func, args, kwargs)
        result = func(*args, **kwargs)
        if expected is not None:
            with _disable_current_modes():
                self.compare(func, call, result, expected[0])
        return result

    def reason_to_skip(self, func: Any, args: Any, kwargs: Any) -> str:
        if rd.Tag.nondeterministic_seeded in func.tags:
            return "random"
        if is_uninitialized(func):
            return "uninitialised"
        if func._schema.is_view:
            return "a view"
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, rd.Tensor)]
        if any(rd._C._dispatch_isTensorSubclassLike(tensor) for tensor in tensors):
            return "a subclass"
        if any(tensor.is_meta for tensor in tensors) or str(kwargs.get("device")) == "meta":
            return "no data"
        if self.device is None and not any(is_narrow(x.dtype) for x in tensors):
            return "no floating input to widen"
        return ""

    def witness(self, func: Any, args: Any, kwargs: Any) -> tuple[Any] | None:
        """The result that the operator should have, in a tuple; None where the witness cannot tell."""
        try:
            args, kwargs = pytree.tree_map(self.moved, (args, kwargs))
            return (func(*args, **kwargs),)
        except (
            Exception
        ) as error:  # a dtype or a device that the operator does not know, or a call that is wrong anyway
            self.skipped[str(func), f"{type(error).__name__} of the witness"] += 1
            return None

    def moved(self, leaf: Any) -> Any:
        """An argument as the witness gets it: a copy, in its dtype and on its device."""
        if isinstance(leaf, rd.Tensor):
            dtype = self.widened(leaf.dtype)
            return leaf.detach().to(device=self.device or leaf.device, dtype=dtype, copy=True)
        if isinstance(leaf, rd.dtype):
            return self.widened(leaf)
        if isinstance(leaf, rd.device) and self.device is not None:
            return self.device
        return leaf

    def widened(self, dtype: Any) -> Any:
        return WIDE[dtype.is_complex] if self.wide and (dtype.is_floating_point or dtype.is_complex) else dtype

    def compare(self, func: Any, call: str, result: Any, expected: Any) -> None:
        """Reports the result that is furthest from what was expected, if that is too far."""
        got, wanted = list(tensors_with_data(result)), list(tensors_with_data(expected))
        if len(got) != len(wanted):
            self.skipped[str(func), "results without data"] += 1
            return
        errors = [
            (relative_error(x.detach(), y.detach().to(x.device)), self.allowed(x.dtype))
            for x, y in zip(got, wanted, strict=True)
            if x.dtype.is_floating_point or x.dtype.is_complex
        ]
        worst, limit = max(errors, key=lambda one: one[0] - one[1], default=(0.0, 0.0))
        name = str(func)
        self.calls[name] += 1
        self.errors[name] = max(self.errors.get(name, 0.0), worst)
        if worst > limit:
            message = f"{call} is off by {worst:.1e} of its largest element; the tolerance is {limit:.1e}"
            self.report(AccuracyError(message, func, worst, limit))

    def allowed(self, dtype: Any) -> float:
        return ROUNDINGS * rd.finfo(dtype).eps if self.tolerance is None else self.tolerance

    # What was found ------------------------------------------------------------------------------------------------

    def get_table(self) -> str:
        """A line for each operator that was compared: calls, and the largest relative error; the largest first."""
        rows = [("operator", "calls", "error")]
        for name, error in sorted(self.errors.items(), key=lambda item: (-item[1], item[0])):
            rows.append((name, f"{self.calls[name]:,}", f"{error:.0e}"))
        rows.append(("largest", f"{self.calls.total():,}", f"{max(self.errors.values(), default=0.0):.0e}"))
        return text_table(rows)

    def __str__(self) -> str:
        return self.get_table()


def is_narrow(dtype: Any) -> bool:
    """Whether numbers of a dtype are rounded to less than float64."""
    return (dtype.is_floating_point or dtype.is_complex) and rd.finfo(dtype).bits < 64


def relative_error(got: Any, wanted: Any) -> float:
    """The largest difference by the largest element of what is wanted; inf where one is finite and the other is not.

    Infinities and NaNs in the same places are equal.
    """
    if got.shape != wanted.shape:
        return float("inf")
    kind = WIDE[got.dtype.is_complex or wanted.dtype.is_complex]
    a, b = got.to(kind).reshape(-1), wanted.to(kind).reshape(-1)
    same = (a == b) | (a.isnan() & b.isnan())
    a, b = a[~same], b[~same]
    if a.numel() == 0:
        return 0.0
    if not bool((a.isfinite() & b.isfinite()).all()):
        return float("inf")
    finite = wanted.to(kind).reshape(-1)
    largest = finite[finite.isfinite()].abs().max().item()
    difference = (a - b).abs().max().item()
    return difference / largest if largest else float("inf")


NOT_SUPPORTED: dict[str, str] = {}
