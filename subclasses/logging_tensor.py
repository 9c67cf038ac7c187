"""LoggingTensor: a tensor that writes down each operator which touches it, with labels for what goes in and comes out.

    log = Log()
    x = LoggingTensor(rd.ones(2, 3), log)
    (x * 2).sum()
    print(log)                  # $1: f32[2, 3] = aten.mul.Tensor($0, 2)
                                # $2: f32[] = aten.sum.default($1)

What it teaches: a wrapper spreads by itself. What it touches becomes a wrapper, and so on down to the loss and back
up through the gradients; tensors that it never meets go unseen. A mode sees everything for a while, a subclass
follows some tensors for as long as they live. Autograd stands above the handler and records the wrappers, so that
what backward runs is logged as well, as plain operators. How serious it is: the model of every wrapper that keeps
something beside the data, such as a scale, a mask, a layout or a proof.

Read next: two_tensor.py, for the three things that a wrapper owes its users; modes/logging_mode.py, for the other
view.
"""

from __future__ import annotations

from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import return_and_correct_aliasing

from .wrapper import face_of


class Log:
    """The lines that tensors of one family write, and the labels that it gives out: `$0`, `$1`, ..."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._given = 0

    def new_label(self) -> str:
        label = f"${self._given}"
        self._given += 1
        return label

    def __str__(self) -> str:
        return "\n".join(self.lines)


class LoggingTensor(rd.Tensor):
    """A wrapper around `elem` that writes into `log` what is done with it; what comes of it writes into the same log.

    Its log is the attribute `journal`: were it called `log`, it would hide the method that derivatives use.
    Requires grad where `elem` does; the graph is then the wrapper's.
    """

    elem: rd.Tensor
    journal: Log
    label: str  # `name` is taken: every tensor has it

    @staticmethod
    def __new__(cls: type, elem: rd.Tensor, log: Log) -> Any:
        return face_of(cls, elem)

    def __init__(self, elem: rd.Tensor, log: Log) -> None:
        # The wrapper is what autograd records; were `elem` recorded, too, there would be two graphs.
        self.elem = elem.detach() if elem.requires_grad else elem
        self.journal, self.label = log, log.new_label()

    def __repr__(self) -> str:
        return f"LoggingTensor({self.label}, {self.elem!r})"

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of the inner tensors, and what else it takes to build the wrapper again."""
        return ["elem"], self.journal

    @staticmethod
    def __tensor_unflatten__(
        inner: dict[str, rd.Tensor], log: Log, outer_size: Any, outer_stride: Any
    ) -> LoggingTensor:
        """A wrapper around another inner tensor, with a label of its own."""
        return LoggingTensor(inner["elem"], log)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        log = next(x.journal for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, cls))
        call = f"{func}({', '.join([*map(shown, args), *(f'{k}={shown(v)}' for k, v in kwargs.items())])})"

        inner_args, inner_kwargs = pytree.tree_map_only(LoggingTensor, lambda x: x.elem, (args, kwargs))
        inner = func(*inner_args, **inner_kwargs)
        # What is written in place comes back under the label that it has; a new label is for what is new.
        new = [one.alias_info is None or not one.alias_info.is_write for one in func._schema.returns]
        outer: Any = [
            pytree.tree_map_only(rd.Tensor, lambda x: cls(x, log), x) if is_new else x
            for x, is_new in zip(inner if len(new) > 1 else (inner,), new, strict=False)
        ]
        outer = outer[0] if len(new) == 1 else tuple(outer) if new else None
        result = return_and_correct_aliasing(func, args, kwargs, outer)
        log.lines.append(f"{shown(result, metadata=True)} = {call}")
        return result


def shown(value: Any, metadata: bool = False) -> str:
    """Returns a value as the log shows it: a LoggingTensor by label (with `metadata`, by it, too), another by metadata.

    Lists and tuples are shown by their items; anything else by its `repr`.
    """
    if isinstance(value, rd.Tensor):
        name = str(value.dtype).rpartition(".")[2].replace("bfloat", "bf").replace("float", "f").replace("int", "i")
        shape = f"{name}{list(value.shape)}"
        if not isinstance(value, LoggingTensor):
            return shape
        return f"{value.label}: {shape}" if metadata else value.label
    if isinstance(value, tuple | list):
        items = ", ".join(shown(item, metadata) for item in value)
        return items if metadata else f"[{items}]"
    return repr(value)


NOT_SUPPORTED: dict[str, str] = {}  # but for what no wrapper can, as the table of operators says
