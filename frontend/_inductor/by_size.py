"""Graphs whose sizes are symbols: each operator by itself at first, and loops of its own for a size that comes often.

A compiled graph is for the very sizes of its inputs. One graph for many sizes is interpreted, then, until some sizes
have come `OFTEN` times: compiling takes as long as thousands of operators. Read next: compile_fx.py.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch.symbolic import Symbolic
from redispatch.dispatch.tensor import Tensor, metadata_of
from redispatch.fx import GraphModule, Interpreter

OFTEN = 8  # calls of the same sizes, from which on they have loops
MOST = 8  # sizes with loops


def is_symbolic(module: GraphModule) -> bool:
    """Whether a size or number in a graph is a symbol."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        sizes = (*value.shape, *value.stride(), value.storage_offset()) if isinstance(value, Tensor) else (value,)
        if any(isinstance(one, Symbolic) for one in sizes):
            return True
    return False


def concrete(module: GraphModule) -> GraphModule:
    """Returns a copy of a graph without what is known of its values."""
    made = copy.deepcopy(module)
    for node in made.graph.nodes:
        node.meta.pop("val", None)
        node.meta.pop("tensor_meta", None)
    return made


class BySize:
    """A graph that is interpreted, and compiled by `compiler` for sizes that come often."""

    def __init__(self, module: GraphModule, compiler: Callable[[GraphModule, Sequence[Any]], Any]) -> None:
        self.module, self.compiler, self.interpreter = module, compiler, Interpreter(module)
        self.seen: Counter[Any] = Counter()
        self.made: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Returns what the graph does of these inputs."""
        key = tuple((metadata_of(x), x._offset) if isinstance(x, Tensor) else x for x in args)
        found = self.made.get(key)
        if found is not None:
            return found(*args)
        if len(self.made) < MOST:
            self.seen[key] += 1
            if self.seen[key] >= OFTEN:
                numbers = any(not isinstance(one, Tensor) for one in args)  # sizes that backward is told
                self.made[key] = self.interpreter.run
                if not numbers:
                    self.made[key] = self.compiler(concrete(self.module), args)
            elif len(self.seen) > 100 * MOST:
                self.seen.clear()
        return self.interpreter.run(*args)
