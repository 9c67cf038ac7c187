"""How a tensor looks in the terminal: `tensor([1.0000, 2.5000], requires_grad=True)`.

Pure functions from a numpy array and a few names to text; what a Tensor is, is not known here. The layout is PyTorch's,
character for character (`tests/parity/printing.py`). Three decisions make it, in the order of this file:

1. which elements are shown: all, or the first and last few along each dimension of a large tensor;
2. how one number is written, so that all those shown have the same width and precision: whole numbers (`1.`), fixed
   point (`1.5000`) or scientific (`1.5000e-08`);
3. how the numbers are set in rows, and which facts follow them (`dtype=`, `device=`, `grad_fn=`).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from redispatch.dispatch import describe

from ..records import dataclass

# --- Options ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The settings of `set_printoptions`."""

    precision: int = 4  # digits after the point
    threshold: float = 1000  # a tensor with more elements is abridged
    edgeitems: int = 3  # what an abridged one shows at both ends of a dimension
    linewidth: int = 80
    sci_mode: bool | None = None  # None: scientific notation where the numbers ask for it


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PROFILES["default"]  # of the process, as in PyTorch: a property of the terminal, not of a thread or task


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed. `profile` ('default', 'short' or 'full') goes first, the others refine it.

    `sci_mode` is set by each call: without it, notation is chosen by the numbers again.
    Errors: ValueError for an unknown profile.

    >>> import redispatch as rd
    >>> rd.set_printoptions(precision=2)
    >>> rd.tensor([1 / 3])
    tensor([0.33])
    >>> rd.set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"unknown print profile {profile!r}; there are {', '.join(map(repr, PROFILES))}")
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    given = {name: value for name, value in given.items() if value is not None}
    base = _options if profile is None else PROFILES[profile]
    _options = replace(base, **given, sci_mode=sci_mode)


def get_printoptions() -> dict[str, object]:
    """The options in force, by name."""
    return asdict(_options)


@contextlib.contextmanager
def printoptions(**kwargs) -> Iterator[None]:
    """Sets the options like `set_printoptions`, until the `with` block ends."""
    global _options
    saved = _options
    try:
        set_printoptions(**kwargs)
        yield
    finally:
        _options = saved


# --- 1. Which elements are shown ----------------------------------------------------------------------------------


def _abridge(values: np.ndarray, edge: int) -> np.ndarray:
    """The elements at the corners: along each dimension longer than 2·edge, the first and last `edge` ones."""
    for axis, size in enumerate(values.shape):
        if size > 2 * edge:
            values = values.take([*range(edge), *range(size - edge, size)], axis)
    return values


# --- 2. How one number is written ---------------------------------------------------------------------------------


class _Plain:
    """Ints and bools: as Python writes them, aligned at the right."""

    def __init__(self, shown: np.ndarray) -> None:
        self.width = max((len(str(value)) for value in shown.ravel().tolist()), default=1)

    def __call__(self, value: int | bool) -> str:
        return str(value).rjust(self.width)


class _Float:
    """Floats: one notation for all, chosen by the finite nonzero numbers among those shown."""

    def __init__(self, shown: np.ndarray, options: PrintOptions) -> None:
        self.precision = options.precision
        shown = shown.ravel().astype(np.float64)
        deciding = shown[np.isfinite(shown) & (shown != 0)]
        self.whole = bool((np.ceil(deciding) == deciding).all())
        self.scientific = False
        self.width = 1
        if not deciding.size:
            return
        sizes = np.abs(deciding)
        low, high = float(sizes.min()), float(sizes.max())
        self.scientific = high > 1000 * low or high > 1e8 or (not self.whole and low < 1e-4)
        if options.sci_mode is not None:
            self.scientific = options.sci_mode
        self.width = max(len(self._digits(value)) for value in deciding.tolist())

    def _digits(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if not self.whole:
            return f"{value:.{self.precision}f}"
        return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"

    def __call__(self, value: float) -> str:
        return self._digits(value).rjust(self.width)


class _Complex:
    """Complex numbers: both parts as floats, each with a notation of its own."""

    def __init__(self, shown: np.ndarray, options: PrintOptions) -> None:
        self.real, self.imag = _Float(shown.real, options), _Float(shown.imag, options)
        self.width = self.real.width + self.imag.width + 1  # for the j; the sign is in a negative part's width only

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip()
        return f"{self.real(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"


_Formatter = _Plain | _Float | _Complex


def _formatter(shown: np.ndarray, options: PrintOptions) -> _Formatter:
    if shown.dtype.kind == "c":
        return _Complex(shown, options)
    return _Plain(shown) if shown.dtype.kind in "biu" else _Float(shown, options)


# --- 3. Rows, and what follows them -------------------------------------------------------------------------------


def _rows(
    shown: np.ndarray, shape: Sequence[int], cut: bool, indent: int, format: _Formatter, options: PrintOptions
) -> str:
    """The nested brackets. `shape` is the tensor's; where `cut`, `shown` has fewer elements along long dimensions."""
    if not shape:
        return format(shown.item())
    if cut and options.edgeitems == 0:
        return "[...]"
    is_cut = cut and shape[0] > 2 * options.edgeitems
    if len(shape) == 1:
        return _row([format(value) for value in shown.tolist()], is_cut, indent, format, options)
    parts = [_rows(part, shape[1:], cut, indent + 1, format, options) for part in shown]
    if is_cut:
        parts.insert(options.edgeitems, "...")
    # A blank line between matrices, two between blocks of them, and so on.
    separator = "," + "\n" * (len(shape) - 1) + " " * (indent + 1)
    return f"[{separator.join(parts)}]"


def _row(numbers: list[str], is_cut: bool, indent: int, format: _Formatter, options: PrintOptions) -> str:
    """One dimension in brackets, broken into lines of as many numbers as fit."""
    if is_cut:
        numbers.insert(options.edgeitems, " ...")
    per_line = max(1, (options.linewidth - indent) // (format.width + len(", ")))
    lines = [", ".join(numbers[i : i + per_line]) for i in range(0, len(numbers), per_line)]
    separator = ",\n" + " " * (indent + 1)
    return f"[{separator.join(lines)}]"


_COMPLEX_OF = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}


def format_tensor(
    values: np.ndarray | None,
    dtype_name: str,
    *,
    shape: Sequence[int] | None = None,
    default_dtype_name: str = "float32",
    device: str | None = None,
    suffixes: Sequence[str] = (),
    prefix: str = "tensor(",
    options: PrintOptions | None = None,
) -> str:
    """The text of a tensor: `prefix`, the numbers, the facts that they do not show, and a closing parenthesis.

    values: the elements; bfloat16 as float32. None where there are none to show, as on the meta device: then `shape`.
    dtype_name: 'float32', ...; it is shown where the numbers alone would be read as another dtype.
    device: shown if not None. suffixes: further facts, in order: 'requires_grad=True', 'grad_fn=<MulBackward0>'.
    prefix: 'tensor(', or the class name of a subclass; the rows are indented by its length.
    """
    options = options or _options
    if shape is None:
        assert values is not None, "without values, the shape must be said"
        shape = values.shape
    shape = tuple(shape)
    facts = [] if device is None else [f"device='{device}'"]
    indent = len(prefix)
    dtypes_read_off = {default_dtype_name}
    if values is None:
        body = "..."
        facts.append(f"size={shape}")
    elif values.size == 0:
        body = "[]"
        if len(shape) != 1:
            facts.append(f"size={shape}")
    else:
        dtypes_read_off |= {"int64", "bool", _COMPLEX_OF.get(default_dtype_name, "")}
        if options.edgeitems == 0:  # then the brackets may hold nothing that would tell
            facts.append(f"size={shape}")
        cut = values.size > options.threshold
        shown = _abridge(values, options.edgeitems) if cut else values
        body = _rows(shown, shape, cut, indent, _formatter(shown, options), options)
    if dtype_name not in dtypes_read_off:
        facts.append(f"dtype=torch.{dtype_name}")
    return append_facts(prefix + body, [*facts, *suffixes], indent, options.linewidth)


def append_facts(text: str, facts: Sequence[str], indent: int, linewidth: int) -> str:
    """`text`, the facts behind it as far as the line reaches, the rest on lines of their own."""
    # PyTorch's count: two more than the characters of the last line, or than all of a single line.
    column = len(text) - text.rfind("\n") + 1
    for fact in facts:
        if column + len(fact) + 2 > linewidth:
            text += ",\n" + " " * indent + fact
            column = indent + len(fact)
        else:
            text += f", {fact}"
            column += len(fact) + 2
    return f"{text})"


# How a notebook shows a tensor: what it prints, and below that the facts that decide what happens to it ---------------

STYLE = """<style>
.redispatch-tensor pre{margin:0 0 .4em;font-size:13px;line-height:1.45;max-height:32em;overflow:auto}
.redispatch-tensor span{display:inline-block;margin:0 .9em .2em 0;font:12px/1.5 ui-monospace,Menlo,Consolas,monospace}
.redispatch-tensor small{opacity:.65;font-size:11px;margin-right:.4em}
</style>"""


def tensor_html(printed: str, look: Iterable[tuple[str, str]], keyset: int) -> str:
    """The text of a tensor, its facts (name, value) and its dispatch keys, as HTML."""
    from html import escape  # here, because only notebooks ask

    keys = describe(keyset).removeprefix("DispatchKeySet(").removesuffix(")")
    facts = "".join(f"<span><small>{name}</small>{escape(value)}</span>" for name, value in (*look, ("keyset", keys)))
    return f'{STYLE}<div class="redispatch-tensor"><pre>{escape(printed)}</pre>{facts}</div>'
