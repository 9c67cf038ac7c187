"""From a graph of operators to the program that lazy tensors made of it, which runs without recording again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import redispatch as rd
from redispatch.fx.graph_module import GraphModule

from . import computation, get_tensor_id, metrics
from .tensor_factory_functions import tensor_factory_functions


@dataclass
class GraphInputMatcher:
    """Finds a program's inputs for a call: an argument where one was traced, the traced value for a constant."""

    tensor_id_to_arg_idx: dict[int, int]
    graph_input_tensor_ids: list[int]
    graph_input_ivalues: list[Any]

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        positions = [self.tensor_id_to_arg_idx.get(one) for one in self.graph_input_tensor_ids]
        traced = zip(positions, self.graph_input_ivalues, strict=True)
        return [value if position is None else args[position] for position, value in traced]


class ReturnValueHandler:
    """Knows which of some tensors are the same: the program has one output for them."""

    def __init__(self, lazy_out_list: Sequence[Any]) -> None:
        first: dict[int, int] = {}
        self.index = [first.setdefault(id(one), len(first)) for one in lazy_out_list]
        self.unique = [lazy_out_list[self.index.index(number)] for number in range(len(first))]

    def duplicate_eager_tensors(self, eager_tensor_list: Sequence[Any]) -> list[Any]:
        """The outputs for all tensors."""
        assert len(eager_tensor_list) == len(self.unique), (len(eager_tensor_list), len(self.unique))
        return [eager_tensor_list[number] for number in self.index]


def force_lazy_device(model: GraphModule) -> None:
    """Has a graph make its tensors on the lazy device."""
    lazy = rd.device("lazy")
    for node in model.graph.nodes:
        named = [one for one in (*node.args, *node.kwargs.values()) if isinstance(one, rd.device)]
        node.args = tuple(lazy if isinstance(one, rd.device) else one for one in node.args)
        node.kwargs = {name: lazy if isinstance(one, rd.device) else one for name, one in node.kwargs.items()}
        if node.target in tensor_factory_functions and not named:
            node.kwargs = {**node.kwargs, "device": lazy}
    model.recompile()


def get_fallback_ops() -> list[str]:
    """The operators that ran at once, and how often: "aten::nonzero=1"."""
    return [f"{name}={metrics.counter_value(name)}" for name in metrics.counter_names() if "aten::" in name]


def extract_compiled_graph(model: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A function of tensors on the CPU that runs the program which a graph records, and writes what the graph writes.

    Errors: RuntimeError where an operator cannot be recorded.
    """
    args = [one.to("lazy") for one in example_inputs]
    numbers = {get_tensor_id(one): position for position, one in enumerate(args)}
    lazy_model = copy.deepcopy(model).to("lazy")
    force_lazy_device(lazy_model)
    metrics.reset()
    found = lazy_model(*args)
    fallback = get_fallback_ops()
    metrics.reset()
    if fallback:
        raise RuntimeError(f"Fail to extract the compiled graph because of fallback: {','.join(fallback)}")
    results = found if isinstance(found, tuple | list) else (found,)
    returned = ReturnValueHandler([*args, *results])
    matcher = GraphInputMatcher(numbers, *computation.get_tensors_ts_device_data_node(returned.unique))
    key = computation.get_graph_hash(returned.unique)

    def optimized(*given: Any) -> Any:
        outputs = returned.duplicate_eager_tensors(computation.run_cached_graph(key, matcher(given)))
        for one, now in zip(given, outputs, strict=False):
            if one is not now:
                one.copy_(now)
        return outputs[len(given) :]

    return optimized
