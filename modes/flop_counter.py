"""FlopCounterMode: how many floating-point operations each operator does.

    with FlopCounterMode(display=False) as flops:
        loss = model(x).sum()
        loss.backward()
    print(flops.get_table())

What it teaches: a mode needs shapes only, so the count is exact and costs nothing per element. What one operator
costs is a *formula* over the shapes of its arguments and result; formulas stand in a table open to everyone, and an
operator without one falls back on its tags: a pointwise operator costs one operation for each element of its result,
a reduction one for each element of what it reduces. How serious it is: for every day; matrix products are counted as
PyTorch's `torch.utils.flop_counter` does (2·m·n·k), which leaves pointwise operators and reductions out.

Read next: logging_mode.py, if you have not; demo/activation.py, which registers the formula of an operator of its
own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import redispatch as rd
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import TorchDispatchMode

Formula = Callable[..., int]

flop_registry: dict[Any, Formula] = {}  # operator packet, such as `ops.aten.mm` -> formula over raw values
_places: dict[Any, str] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator which makes a function the formula of one operator packet, or of several (`redispatch.ops.aten.mm`).

    The function gets the operator's arguments with each tensor replaced by its shape, and the result's shape as
    `out_shape`; with `get_raw`, the tensors themselves, and the result as `out_val`. `flop_registry` holds all
    formulas; `FlopCounterMode(custom_mapping=...)` brings one for a single region.
    Errors: RuntimeError where the operator has a formula already.
    """

    def register(formula: Formula) -> Formula:
        place = f"{formula.__code__.co_filename}:{formula.__code__.co_firstlineno}"
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if target in flop_registry:
                raise RuntimeError(
                    f"duplicate registrations for {target}: it has a FLOP formula from {_places.get(target, '?')}, and "
                    f"another one was registered at {place}; `del flop_registry[...]` removes the first"
                )
            flop_registry[target] = formula if get_raw else over_shapes(formula)
            _places[target] = place
        return formula

    return register


def over_shapes(formula: Formula) -> Formula:
    """`formula`, which knows shapes only, made callable with tensors."""

    def raw(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = pytree.tree_map_only(rd.Tensor, lambda x: tuple(x.shape), (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return raw


@register_flop_formula(rd.ops.aten.mm)
def mm_flops(a_shape: tuple[int, ...], b_shape: tuple[int, ...], *args: Any, **kwargs: Any) -> int:
    """[m, k] @ [k, n]: a multiplication and an addition for each of the m·n·k terms."""
    (m, k), (_, n) = a_shape, b_shape
    return 2 * m * n * k


@register_flop_formula(rd.ops.aten.addmm)
def addmm_flops(bias_shape: tuple[int, ...], a_shape: tuple[int, ...], b_shape: tuple[int, ...], **kwargs: Any) -> int:
    """The product's; the m·n additions of the bias are not counted, as in PyTorch."""
    return mm_flops(a_shape, b_shape)


@register_flop_formula(rd.ops.aten.bmm)
def bmm_flops(a_shape: tuple[int, ...], b_shape: tuple[int, ...], *args: Any, **kwargs: Any) -> int:
    """[batch, m, k] @ [batch, k, n]."""
    return a_shape[0] * mm_flops(a_shape[1:], b_shape[1:])


@register_flop_formula(rd.ops.aten.baddbmm)
def baddbmm_flops(
    bias_shape: tuple[int, ...], a_shape: tuple[int, ...], b_shape: tuple[int, ...], **kwargs: Any
) -> int:
    """The product's; additions of the bias are not counted."""
    return bmm_flops(a_shape, b_shape)


@register_flop_formula([rd.ops.aten._softmax, rd.ops.aten._log_softmax])
def softmax_flops(x_shape: tuple[int, ...], *args: Any, **kwargs: Any) -> int:
    """For each element: compare for the maximum, subtract it, exp, add up, and divide (or subtract the logarithm)."""
    return 5 * prod(x_shape)


@register_flop_formula([rd.ops.aten._softmax_backward_data, rd.ops.aten._log_softmax_backward_data])
def softmax_backward_flops(grad_shape: tuple[int, ...], *args: Any, **kwargs: Any) -> int:
    """For each element: (grad - sum(grad * y)) * y, or grad - exp(y) * sum(grad)."""
    return 4 * prod(grad_shape)


@register_flop_formula(rd.ops.aten.clone)
def clone_flops(*args: Any, **kwargs: Any) -> int:
    """A copy computes nothing, although its tag says pointwise."""
    return 0


def flops_by_tags(func: Any, args: Any, kwargs: Any, out: Any) -> int:
    """What an operator without a formula costs: by its tags, or nothing (views, copies, indexing, new tensors)."""
    tags = {str(tag).removeprefix("Tag.") for tag in func.tags}
    if "pointwise" in tags:
        return sum(x.numel() for x in pytree.tree_leaves(out) if isinstance(x, rd.Tensor))
    if "reduction" in tags:
        return next(x.numel() for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, rd.Tensor))
    return 0


class FlopCounterMode(TorchDispatchMode):
    """A region whose floating-point operations are counted, operator by operator, forward and backward.

    display: prints the table when the region ends. custom_mapping: formulas for this region only, as PyTorch takes
    them: operator packet -> function of the arguments' shapes (a function with `_get_raw` set gets tensors).
    Results: `get_total_flops()`, `get_flop_counts()`, `get_table()`; `calls` has the number of calls of each packet.
    """

    def __init__(self, *, display: bool = True, custom_mapping: Mapping[Any, Formula] | None = None) -> None:
        super().__init__()
        self.display = display
        self.own = {
            op: formula if getattr(formula, "_get_raw", False) else over_shapes(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.calls: Counter[Any] = Counter()
        self.flops: Counter[Any] = Counter()

    def __enter__(self) -> FlopCounterMode:
        self.calls.clear()
        self.flops.clear()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        if self.display:
            print(self.get_table())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        formula = self.own.get(packet) or flop_registry.get(packet)
        if formula is None:
            # In inference mode `linear` and `matmul` arrive whole: count the parts that they are made of.
            with FlopCounterMode(display=False) as parts:
                parts.own = self.own
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                self.calls.update(parts.calls)
                self.flops.update(parts.flops)
                return result
        result = func(*args, **kwargs)
        self.calls[packet] += 1
        if formula is not None:
            self.flops[packet] += formula(*args, **kwargs, out_val=result)
        else:
            self.flops[packet] += flops_by_tags(func, args, kwargs, result)
        return result

    def get_total_flops(self) -> int:
        """The sum over all operators."""
        return self.flops.total()

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """FLOPs by operator packet, under the one heading "Global", where PyTorch has one for each module as well."""
        return {"Global": {op: n for op, n in self.flops.items() if n}}

    def get_table(self) -> str:
        """A line for each operator: calls, FLOPs, share of the total; the most expensive first, the total last."""
        total = self.get_total_flops()
        rows = [("operator", "calls", "FLOPs", "share")]
        for op in sorted(self.calls, key=lambda op: (-self.flops[op], str(op))):
            share = f"{self.flops[op] / total:.1%}" if total else "-"
            rows.append((str(op), f"{self.calls[op]:,}", f"{self.flops[op]:,}", share))
        rows.append(("total", f"{self.calls.total():,}", f"{total:,}", "100.0%" if total else "-"))
        name, *numbers = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [
            "  ".join([first.ljust(name), *(n.rjust(width) for n, width in zip(rest, numbers, strict=True))])
            for first, *rest in rows
        ]
        rule = "-" * len(lines[0])
        return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


NOT_SUPPORTED: dict[str, str] = {}
