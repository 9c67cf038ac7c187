"""FlopCounterMode: how many floating-point operations each operator does.

    with FlopCounterMode(display=False) as flops:
        loss = model(x).sum()
        loss.backward()
    print(flops.get_table())

What it teaches: a mode needs shapes only, so the count is exact and costs nothing per element. What one operator
costs is a *formula* over the shapes of its arguments and result; formulas stand in a table open to everyone, and an
operator without one falls back on its tags: a pointwise operator costs one operation for each element of its result,
a reduction one for each element of what it reduces. How serious it is: for every day; products are counted as
PyTorch's `torch.utils.flop_counter` does, which leaves pointwise operators and reductions out.

Read next: frontend/utils/flop_counter.py, which counts by module; frontend/utils/flop_counter.py, the table;
frontend/demo/train.py, which registers the formula of an operator of its own; logging_mode.py, if you have not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils import flop_counter
from redispatch.utils.flop_counter import Formula, flop_registry, register_flop_formula
from redispatch.utils.text import text_table

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]


def softmax_flops(x: rd.Tensor, *args: Any, **kwargs: Any) -> int:
    """For each element: compare for the maximum, subtract it, exp, add up, and divide (or subtract the logarithm)."""
    return 5 * x.numel()


def softmax_backward_flops(grad: rd.Tensor, *args: Any, **kwargs: Any) -> int:
    """For each element: (grad - sum(grad * y)) * y, or grad - exp(y) * sum(grad)."""
    return 4 * grad.numel()


def clone_flops(*args: Any, **kwargs: Any) -> int:
    """A copy computes nothing, although its tag says pointwise."""
    return 0


BESIDE_PRODUCTS: dict[Any, Formula] = {  # what frontend/utils/flop_counter.py does not count
    rd.ops.aten._softmax: softmax_flops,
    rd.ops.aten._safe_softmax: softmax_flops,
    rd.ops.aten._log_softmax: softmax_flops,
    rd.ops.aten._softmax_backward_data: softmax_backward_flops,
    rd.ops.aten._log_softmax_backward_data: softmax_backward_flops,
    rd.ops.aten.clone: clone_flops,
}


def flops_by_tags(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """Returns the cost of an operator without a formula: by its tags, or nothing (views, copies, indexing, new
    tensors)."""
    tags = {str(tag).removeprefix("Tag.") for tag in getattr(func, "tags", ())}
    if "pointwise" in tags:
        return sum(x.numel() for x in pytree.tree_leaves(out) if isinstance(x, rd.Tensor))
    if "reduction" in tags:
        return next(x.numel() for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor))
    return 0


class FlopCounterMode(flop_counter.FlopCounterMode):
    """A region whose floating-point operations are counted, operator by operator, forward and backward.

    display: prints the table when the region ends. custom_mapping: formulas for this region only, as PyTorch takes
    them: operator packet -> function of the arguments' shapes (a function with `_get_raw` set gets tensors).
    Results: `get_total_flops()`, `get_flop_counts()`, by module, and `get_table()`; `calls` has the number of calls of
    each packet, `flops` what they cost.
    """

    def __init__(self, *, display: bool = True, custom_mapping: Mapping[Any, Formula] | None = None) -> None:
        super().__init__(display=display, custom_mapping=custom_mapping)
        self.flop_registry = BESIDE_PRODUCTS | self.flop_registry
        self.calls: Counter[Any] = Counter()

    def __enter__(self) -> FlopCounterMode:
        self.calls.clear()
        return super().__enter__()

    @property
    def flops(self) -> Counter[Any]:
        return Counter(self.flop_counts.get("Global", {}))

    def _count(self, func: Any, packet: Any, args: Any, kwargs: Any, result: Any) -> None:
        self.calls[packet] += 1
        if packet in self.flop_registry:
            super()._count(func, packet, args, kwargs, result)
        else:
            self._add(packet, flops_by_tags(func, args, kwargs, result))

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """FLOPs by operator packet, by module, without those that cost nothing; all together are those of "Global"."""
        counts = {name: {op: n for op, n in by_op.items() if n} for name, by_op in self.flop_counts.items()}
        return {"Global": {}} | counts

    def get_table(self, depth: int | None = None) -> str:
        """A line for each operator: calls, FLOPs, share of the total; the most expensive first, the total last.

        depth: where it is given, PyTorch's table instead: by module, down to that level.
        """
        if depth is not None:
            return super().get_table(depth)
        total, flops = self.get_total_flops(), self.flops
        rows = [("operator", "calls", "FLOPs", "share")]
        for op in sorted(self.calls, key=lambda op: (-flops[op], str(op))):
            share = f"{flops[op] / total:.1%}" if total else "-"
            rows.append((str(op), f"{self.calls[op]:,}", f"{flops[op]:,}", share))
        rows.append(("total", f"{self.calls.total():,}", f"{total:,}", "100.0%" if total else "-"))
        return text_table(rows)


NOT_SUPPORTED: dict[str, str] = {}
