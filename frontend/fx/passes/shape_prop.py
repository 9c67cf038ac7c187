"""`ShapeProp` and `FakeTensorProp`: run a graph, and note at each node what its value looks like."""

from __future__ import annotations

from typing import Any

from redispatch import Tensor
from redispatch.dispatch.symbolic import Symbolic
from redispatch.modes.fake_tensor import FakeTensor, FakeTensorMode

from ..experimental.proxy_tensor import TensorMetadata, metadata_of
from ..experimental.symbolic_shapes import rebind_unbacked
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["FakeTensorProp", "ShapeProp", "TensorMetadata"]


class ShapeProp(Interpreter):
    """Runs a graph, and notes at each node `meta["tensor_meta"]`, of its tensors, and `meta["type"]`, its value's type.

    fake_mode: it is run on fakes of its inputs.
    """

    def __init__(self, gm: Any, fake_mode: FakeTensorMode | None = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Returns the value of a node. RuntimeError that says which, where it has none."""
        try:
            result = super().run_node(n)
        except Exception as problem:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from problem
        found: list[Tensor] = []

        def looks(one: Any) -> Any:
            if not isinstance(one, Tensor):
                return one
            found.append(one)
            return metadata_of(one)

        meta = map_aggregate(result, looks)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Returns the result for these inputs, and leaves the notes."""
        if self.fake_mode is None:
            return self.run(*args)
        with self.fake_mode:
            return self.run(*faked(self.fake_mode, args))


class FakeTensorProp(Interpreter):
    """Runs a graph on fakes, and notes at each node `meta["val"]`: a fake of its value."""

    def __init__(self, module: Any, mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def run_node(self, n: Node) -> Any:
        """Returns the fake that is the value of a node."""
        result = super().run_node(n)

        def kept(one: Any) -> Any:
            if isinstance(one, Tensor):
                return (one if isinstance(one, FakeTensor) else self._mode.from_tensor(one)).detach()
            return one if isinstance(one, int | float | bool | Symbolic) else None

        meta = map_aggregate(result, kept)
        rebind_unbacked(self._mode.shape_env, n, result)
        if meta is not None:
            n.meta["val"] = meta
        return result

    def propagate(self, *args: Any) -> Any:
        """Returns the result for fakes of these inputs, and leaves the notes."""
        return self.propagate_dont_convert_inputs(*faked(self._mode, args))

    def propagate_dont_convert_inputs(self, *args: Any) -> Any:
        """Returns the result for these inputs, which are fakes already."""
        self._mode.epoch += 1
        with self._mode:
            return self.run(*args)


def faked(mode: FakeTensorMode, args: Any) -> list[Any]:
    """Returns the inputs with fakes for tensors."""
    return [mode.from_tensor(one) if isinstance(one, Tensor) else one for one in args]
