"""_LazyGraphModule: a GraphModule that makes code when the code is asked for, and not at each change of its graph.

with _use_lazy_graph_module(True):
    module = symbolic_trace(f)          # of a program that is about to be changed by passes
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .graph_module import GraphModule

LAZY: ContextVar[bool | None] = ContextVar("whether graph modules make code late; None: never", default=False)


class _LazyGraphModule(GraphModule):
    """See above."""

    _pending = False

    @classmethod
    def from_graphmodule(cls, gm: GraphModule) -> GraphModule:
        """Returns a module of this kind that computes the same; itself, if it is one."""
        return gm if isinstance(gm, cls) else cls(gm, gm.graph)

    @staticmethod
    def force_recompile(gm: Any) -> None:
        """Has a module's code made if that is due."""
        if isinstance(gm, _LazyGraphModule):
            gm.real_recompile()

    def recompile(self) -> Any:
        """Notes that code is due."""
        self._pending = True
        type(self).forward = _LazyGraphModule._lazy_forward
        return None

    def real_recompile(self) -> None:
        if self._pending:
            self._real_recompile()

    def _real_recompile(self) -> Any:
        self._pending = False
        return super().recompile()

    def _needs_recompile(self) -> bool:
        return self._pending

    def _lazy_forward(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        return self.forward(*args, **kwargs)

    forward = _lazy_forward

    @property
    def code(self) -> str:
        self.real_recompile()
        return super().code

    def __reduce__(self) -> Any:
        self.real_recompile()
        return super().__reduce__()

    def __str__(self) -> str:
        self.real_recompile()
        return super().__str__()


def _make_graph_module(*args: Any, graph_module_cls: type[GraphModule] | None = None, **kwargs: Any) -> GraphModule:
    """Returns a graph module, in a region of `_use_lazy_graph_module` a lazy one."""
    return (graph_module_cls or (_LazyGraphModule if LAZY.get() else GraphModule))(*args, **kwargs)


@contextmanager
def _use_lazy_graph_module(should_use: bool) -> Iterator[None]:
    """A region in which tracers make lazy graph modules, or do not."""
    token = LAZY.set(LAZY.get() if LAZY.get() is None else should_use)
    try:
        yield
    finally:
        LAZY.reset(token)


@contextmanager
def _force_skip_lazy_graph_module() -> Iterator[None]:
    """A region in which no lazy graph modules are made, whatever regions inside say."""
    token = LAZY.set(None)
    try:
        yield
    finally:
        LAZY.reset(token)
