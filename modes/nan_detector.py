"""NanDetectorMode: stops at the operator that first makes a NaN or an infinity, and says what it was given.

    with NanDetectorMode():
        loss = model(x)
        loss.backward()                 # NonFiniteError: aten.div.Tensor(f32[2], f32[2]) made 1 NaN …

What it teaches: blame belongs to the one who makes, not to the ones who pass on. An operator is to blame if its result
is not finite although all that it was given was: tensors and numbers, too, so that a mask filled with -inf because the
program says so is no finding. And since a mode sees the derivatives' operators, a NaN that only backward makes is found
where it is made. How serious it is: for the hour in which a loss is NaN. Every input and result is read once more.

Read next: `redispatch.autograd.detect_anomaly`, which finds the forward line of a backward NaN; determinism.py.
"""

from __future__ import annotations

import math
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import _disable_current_modes

from .findings import FindingMode, floating_tensors, is_uninitialized
from .logging_mode import call_text


class NonFiniteError(FloatingPointError):
    """An operator made a NaN or an infinity of finite inputs. func: the operator; inputs: a line about each of them."""

    def __init__(self, message: str, func: Any, inputs: list[str]) -> None:
        super().__init__(message)
        self.func, self.inputs = func, inputs


class NanDetectorMode(FindingMode):
    """A region in which no operator may make what is not finite.

    infinities: whether they count; without them only NaN does. action: "raise", "warn" or "record".
    Not checked: what `empty` and its kin return, and tensors without data (meta, fake).

    >>> import redispatch as rd
    >>> from redispatch.modes import NanDetectorMode
    >>> with NanDetectorMode():
    ...     rd.tensor(0.0).log() * 0
    Traceback (most recent call last):
        ...
    redispatch.modes.nan_detector.NonFiniteError: aten.log.default(f32[]) made 1 inf in 1 elements, of finite inputs:...
    """

    def __init__(self, *, infinities: bool = True, action: str = "raise") -> None:
        super().__init__(action)
        self.infinities = infinities

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if is_uninitialized(func):
            return func(*args, **kwargs)
        # Before the call, which may write its arguments. Those that it writes without reading them are no inputs.
        given, call, inputs = read_by(func, args, kwargs), call_text(func, args, kwargs), []
        with _disable_current_modes():  # what is done to look at numbers is nobody else's business
            clean = not any(map(self.is_bad, [*numbers(given), *floating_tensors(given)]))
            if clean and func._schema.is_mutable:
                inputs = [description(tensor) for tensor in floating_tensors(given)]
        result = func(*args, **kwargs)
        if not clean:
            return result
        with _disable_current_modes():
            bad = [tensor for tensor in floating_tensors(result) if self.is_bad(tensor)]
            if bad:
                inputs = inputs or [description(tensor) for tensor in floating_tensors(given)]
                message = self.message(call, bad, inputs)
        if bad:
            self.report(NonFiniteError(message, func, inputs))
        return result

    def is_bad(self, value: Any) -> bool:
        """Whether a tensor or a number has something that is not to be made."""
        if isinstance(value, rd.Tensor):
            good = value.detach().isfinite() if self.infinities else ~value.detach().isnan()
            return not bool(good.all())
        parts = (value.real, value.imag)
        return not all(map(math.isfinite, parts)) if self.infinities else any(map(math.isnan, parts))

    def message(self, call: str, bad: list[Any], inputs: list[str]) -> str:
        nans = sum(int(x.isnan().sum()) for x in bad)
        infinities = sum(int(x.isinf().sum()) for x in bad) if self.infinities else 0
        made = [f"{nans} NaN"] * bool(nans) + [f"{infinities} inf"] * bool(infinities)
        of = "".join(f"\n  {line}" for line in inputs)
        return f"{call} made {' and '.join(made)} in {sum(x.numel() for x in bad)} elements, of finite inputs:{of}"


def numbers(value: Any) -> list[Any]:
    """The floating and complex Python numbers in a value."""
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, float | complex)]


def read_by(func: Any, args: Any, kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that an operator may read: all but those of `out=`, and the target of a copy or a fill."""
    schema = func._schema
    written_only = {argument.name for argument in schema.arguments if argument.is_out}
    if writes_all(func):
        written_only.add("self")
    names = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    return [value for name, value in given.items() if name not in written_only]


def writes_all(func: Any) -> bool:
    """Whether nothing is left of the first argument's former values: it is copied to, filled, or drawn."""
    schema = func._schema
    if schema.name in ("aten::copy_", "aten::fill_", "aten::zero_", "aten::set_"):
        return True
    scales = any(argument.name == "noise" for argument in schema.arguments)  # what is there, by what it draws
    return schema.name.endswith("_") and rd.Tag.nondeterministic_seeded in func.tags and not scales


def description(tensor: Any) -> str:
    """A tensor in a line: shape, dtype, and the range of its elements."""
    x = tensor.detach()
    head = f"{str(x.dtype).rpartition('.')[2]}{list(x.shape)}"
    if x.numel() == 0:
        return f"{head}, empty"
    if x.dtype.is_complex:
        return f"{head}, magnitudes from {x.abs().min().item():.4g} to {x.abs().max().item():.4g}"
    return f"{head}, from {x.min().item():.4g} to {x.max().item():.4g}"


NOT_SUPPORTED: dict[str, str] = {}
