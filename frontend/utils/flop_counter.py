"""FlopCounterMode: how many floating-point operations each module does, as PyTorch's `torch.utils.flop_counter` counts.

    with FlopCounterMode(display=False) as counter:
        model(x).sum().backward()
    print(counter.get_table())

Counted are products: of matrices, convolution, attention (flop_formulas.py). `redispatch.modes.FlopCounterMode` is this
one with pointwise operators and reductions counted, too, and one line for each operator. Read next: flop_formulas.py,
where an operator gets its formula; module_tracker.py.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from ._python_dispatch import TorchDispatchMode
from .flop_formulas import (
    Formula,
    addmm_flop,
    baddbmm_flop,
    bmm_flop,
    conv_backward_flop,
    conv_flop,
    conv_flop_count,
    flop_registry,
    mm_flop,
    register_flop_formula,
    sdpa_backward_flop,
    sdpa_backward_flop_count,
    sdpa_flop,
    sdpa_flop_count,
    shape_wrapper,
)
from .module_tracker import GLOBAL, ModuleTracker
from .text_table import text_table

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
                "FlopCounterMode(mods=...) is of no use any more: modules are found when they are called. Leave it out",
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
