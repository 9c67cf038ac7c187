"""FlopCounterMode: how many floating-point operations each module does, as PyTorch's `torch.utils.flop_counter` counts.

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    print(counter.get_table())

Counted are products: of matrices, convolution, attention. `redispatch.modes.FlopCounterMode` is this one with pointwise
operators and reductions counted, too, and one line for each operator. Read next: module_tracker.py.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from redispatch.dispatch import OpOverload, ops, pytree
from redispatch.dispatch.tensor import Tensor

from ._python_dispatch import TorchDispatchMode
from .module_tracker import GLOBAL, ModuleTracker
from .text import text_table

Formula = Callable[..., int]
Shape = Sequence[int]

flop_registry: dict[Any, Formula] = {}  # operator packet, such as `ops.aten.mm` -> formula over raw values
_places: dict[Any, str] = {}


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """A decorator which makes a function the formula of one operator packet, or of several (`redispatch.ops.aten.mm`).

    The function gets the operator's arguments with each tensor replaced by its shape, and the result's shape as
    `out_shape`; with `get_raw`, the tensors themselves, and the result as `out_val`. `flop_registry` holds all
    formulas; `FlopCounterMode(custom_mapping=...)` brings one for a single region.
    Errors: RuntimeError where the operator has a formula already; ValueError for a target that is no packet.
    """

    def register(formula: Formula) -> Formula:
        place = f"{formula.__code__.co_filename}:{formula.__code__.co_firstlineno}"
        for target in targets if isinstance(targets, list | tuple) else [targets]:
            if isinstance(target, OpOverload) or not callable(target):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket (such as "
                    f"torch.ops.aten.mm, which speaks for all its overloads) or HigherOrderOperator, got {target!r}"
                )
            if target in flop_registry:
                raise RuntimeError(
                    f"duplicate registrations for {target}: it has a FLOP formula from {_places.get(target, '?')}, and "
                    f"another one was registered at {place}; `del flop_registry[...]` removes the first"
                )
            flop_registry[target] = formula if get_raw else shape_wrapper(formula)
            _places[target] = place
        return formula

    return register


def shape_wrapper(formula: Formula) -> Formula:
    """`formula`, which knows shapes only, made callable with tensors."""

    def raw(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out_shape = pytree.tree_map_only(Tensor, lambda x: tuple(x.shape), (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return raw


# --- products of matrices --------------------------------------------------------------------------------------------


@register_flop_formula(ops.aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[m, k] @ [k, n]: a multiplication and an addition for each of the m·n·k terms."""
    (m, k), (_, n) = a_shape, b_shape
    return 2 * m * n * k


@register_flop_formula(ops.aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; the m·n additions of the bias are not counted."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(ops.aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """[batch, m, k] @ [batch, k, n]."""
    return a_shape[0] * mm_flop(a_shape[1:], b_shape[1:])


@register_flop_formula(ops.aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """The product's; additions of the bias are not counted."""
    return bmm_flop(a_shape, b_shape)


# --- convolution -----------------------------------------------------------------------------------------------------


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """Each weight meets each place of the result, or of the input where the convolution is transposed, in each example.

    x_shape: [batch, channels, *places]; w_shape: [channels, channels / groups, *window].
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


@register_flop_formula([ops.aten.convolution, ops.aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Shape,
    **kwargs: Any,
) -> int:
    """The products; additions of the bias are not counted."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


@register_flop_formula(ops.aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    output_mask: Sequence[bool],
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The gradient by the input costs what forward does; that by the weight, too, where there are no groups.

    With groups PyTorch counts the gradient by the weight as if all channels met: `groups` times what is computed. So
    does this, for the sake of counts that can be compared.
    """
    forward = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)
    return forward * output_mask[0] + forward * groups * output_mask[1]


# --- attention -------------------------------------------------------------------------------------------------------


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """query @ keyᵀ, and its softmax @ value. Shapes: [batch, heads, positions, size]; a mask spares nothing."""
    batch, heads, queries, size = query_shape
    keys, value_size = key_shape[-2], value_shape[-1]
    return 2 * batch * heads * queries * keys * (size + value_size)


@register_flop_formula(ops.aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """The two products."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """query @ keyᵀ once more, the gradients of value and of the softmax, and those of query and key: five products."""
    batch, heads, queries, size = query_shape
    keys, value_size = key_shape[-2], value_shape[-1]
    return 2 * batch * heads * queries * keys * (3 * size + 2 * value_size)


@register_flop_formula(ops.aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """The five products."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


__all__ = [
    "FlopCounterMode",
    "addmm_flop",
    "baddbmm_flop",
    "bmm_flop",
    "conv_backward_flop",
    "conv_flop",
    "conv_flop_count",
    "flop_registry",
    "mm_flop",
    "register_flop_formula",
    "sdpa_backward_flop",
    "sdpa_backward_flop_count",
    "sdpa_flop",
    "sdpa_flop_count",
    "shape_wrapper",
]
SUFFIXES = ("", "K", "M", "B", "T")


class FlopCounterMode(TorchDispatchMode):
    """A region whose floating-point operations are counted, by module and by operator, forward and backward.

    mods: of no use any more; a warning says so. depth: down to which level the table has modules, None: all. display:
    prints the table when the region ends. custom_mapping: formulas for this region only, operator packet -> function
    of the arguments' shapes (a function with `_get_raw` set gets tensors).
    Results: `get_total_flops()`, `get_flop_counts()`, `get_table()`. Each region starts from nothing.

    >>> import redispatch as rd
    >>> from redispatch.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     _ = rd.ones(2, 3) @ rd.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int | None = 2,
        display: bool = True,
        custom_mapping: Mapping[Any, Formula] | None = None,
    ) -> None:
        super().__init__()
        if mods is not None:
            warnings.warn(
                "mods argument is not needed anymore, you can stop passing it: modules are found when they are called",
                stacklevel=2,
            )
        self.depth, self.display = depth, display
        own = {
            op: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.flop_registry: dict[Any, Formula] = {**flop_registry, **own}
        self.flop_counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        self.mod_tracker = ModuleTracker()

    def __enter__(self) -> Any:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self.mod_tracker.__exit__(*error)
        if self.display:
            print(self.get_table())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = getattr(func, "overloadpacket", func)  # a higher-order operator has no overloads
        if packet not in self.flop_registry and hasattr(func, "decompose"):
            # In inference mode `linear` and `matmul` arrive whole: count the parts that they are made of.
            result = self._by_parts(func, args, kwargs)
            if result is not NotImplemented:
                return result
        result = func(*args, **kwargs)
        self._count(func, packet, args, kwargs, result)
        return result

    def _by_parts(self, func: Any, args: Any, kwargs: Any) -> Any:
        super().__enter__()
        try:
            return func.decompose(*args, **kwargs)
        finally:
            super().__exit__(None, None, None)

    def _count(self, func: Any, packet: Any, args: Any, kwargs: Any, result: Any) -> None:
        formula = self.flop_registry.get(packet)
        if formula is not None:
            self._add(packet, formula(*args, **kwargs, out_val=result))

    def _add(self, packet: Any, flops: int) -> None:
        for name in sorted(self.mod_tracker.parents):
            self.flop_counts[name][packet] += flops

    # What was found ------------------------------------------------------------------------------------------------

    def get_total_flops(self) -> int:
        """The sum over all operators."""
        return self.flop_counts[GLOBAL].total() if GLOBAL in self.flop_counts else 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """FLOPs by operator packet, by module, as ModuleTracker names it; all together are those of "Global"."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A line for each module, and below it one for each operator in it: FLOPs, share of the total.

        depth: down to which level, None: that of the mode. "Global" has lines of its own unless a module has it all.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        modules = sorted(name for name in self.flop_counts if name != GLOBAL)
        subsumed = any(self.flop_counts[name].total() >= total for name in modules)
        apart = GLOBAL in self.flop_counts and not subsumed
        rows = [("Module", "FLOP", "% Total"), *(self._rows(GLOBAL, 0, total) if apart else [])]
        for name in modules:
            level = name.count(".")
            if depth is None or level < depth:
                rows += self._rows(name, level + apart, total)
        if len(rows) == 1:
            rows.append((GLOBAL, "0", "0%"))
        return text_table(rows, total=False)

    def _rows(self, name: str, indent: int, total: int) -> list[tuple[str, str, str]]:
        counts = self.flop_counts[name]
        spaces = " " * indent
        lines = [(spaces + name, counts.total()), *((f"{spaces} - {op}", flops) for op, flops in counts.items())]
        return [(text, spoken_flops(flops, total), f"{flops / total:.2%}" if total else "0%") for text, flops in lines]


def spoken_flops(flops: int, total: int) -> str:
    """A count in the unit that fits the total: `1.500M`; up to four digits before the point, as in PyTorch."""
    power = max(0, min(len(SUFFIXES) - 1, (len(str(total)) - 2) // 3))
    return f"{flops / 1000**power:.3f}{SUFFIXES[power]}"
