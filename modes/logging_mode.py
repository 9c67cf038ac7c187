"""LoggingMode: writes down every operator that runs, with short summaries of what goes in and what comes out.

    with LoggingMode() as log:
        model(x)
    print(log)

What it teaches: a dispatch mode is a class with one method. While the mode is active every operator arrives there,
below autograd and autocast, so the log shows what really runs: `linear` arrives as `t` and `addmm`, and `backward()`
as the operators of the derivatives. While the method runs, its own mode is off; calling `func` therefore goes on to
the next mode, then to the kernel, and not round in a circle. How serious it is: a tool for every day, and the shape
of every other mode.

Read next: flop_counter.py, which counts what this one prints; subclasses/logging_tensor.py, which sees only the
operators that touch one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.utils._python_dispatch import TorchDispatchMode


class LoggingMode(TorchDispatchMode):
    """A region that records each operator as a line such as `aten.add.Tensor(f32[2, 3], 1) -> f32[2, 3]`.

    write: what is called with each line as it is made, such as `print`; without it lines are only collected.
    The lines are in `lines`; `str(mode)` joins them. An operator that raises is recorded, too, with its exception.

    >>> import redispatch as rd
    >>> from redispatch.modes import LoggingMode
    >>> with LoggingMode() as log:
    ...     _ = rd.ones(2) + 1
    >>> print(log)
    aten.ones.default([2], device=device(type='cpu'), pin_memory=False) -> f32[2]
    aten.add.Tensor(f32[2], 1) -> f32[2]
    """

    def __init__(self, write: Callable[[str], Any] | None = None) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.write = write

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # Before the call: an in-place operator may change what the summary shows.
        call = call_text(func, args, kwargs)
        try:
            result = func(*args, **kwargs)
        except Exception as error:
            self._record(f"{call} raised {type(error).__name__}")
            raise
        self._record(f"{call} -> {summary(result)}")
        return result

    def _record(self, line: str) -> None:
        self.lines.append(line)
        if self.write:
            self.write(line)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def call_text(func: Any, args: Any, kwargs: dict[str, Any]) -> str:
    """A call in a line: `aten.div.Tensor(f32[2], f32[2])`."""
    return f"{func}({arguments_text(args, kwargs)})"


def arguments_text(args: Any, kwargs: dict[str, Any]) -> str:
    """The arguments of a call in a line: `f32[2], f32[2], alpha=2`."""
    return ", ".join([*map(summary, args), *(f"{name}={summary(value)}" for name, value in kwargs.items())])


def summary(value: Any) -> str:
    """A value in a few characters: a tensor as `f32[2, 3]`, with class and device where they are not the usual ones.

    Lists and tuples are shown by their items; anything else by its `repr`.
    """
    if isinstance(value, rd.Tensor):
        name = short_name(value.dtype) + str(list(value.shape))
        if type(value) is not rd.Tensor:
            name = f"{type(value).__name__}({name})"
        return name if value.device.type == "cpu" else f"{name} on {value.device}"
    if isinstance(value, tuple):
        return f"({', '.join(map(summary, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(summary, value))}]"
    return repr(value)


def short_name(dtype: rd.dtype) -> str:
    """`f32` for float32, `i64` for int64, `bf16` for bfloat16, `u8` for uint8, `c64` for complex64."""
    name = str(dtype).rpartition(".")[2]
    for word, letter in (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c")):
        name = name.replace(word, letter)
    return name


NOT_SUPPORTED: dict[str, str] = {}
