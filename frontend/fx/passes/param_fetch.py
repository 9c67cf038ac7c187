"""Attributes of modules that a backend is given together with the call of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch import nn, typename

from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """Returns the name of an attribute in a version of its module: the same."""
    return name


WINDOW = "kernel_size stride padding dilation"
# A class -> its version as of this row, its attributes, and their names in other versions
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (1, ["weight", "bias", *WINDOW.split(), "groups", "padding_mode"], default_matching),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (1, [*WINDOW.split(), "return_indices", "ceil_mode"], default_matching),
    nn.ReLU: (1, ["inplace"], default_matching),
}


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """Returns the attributes that the book names for a module's class, and its name.

    Errors: RuntimeError for a class, or a version of it, that the book does not know.
    """
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{typename(mod)} is not in the module_fetch_book yet; add a row to module_fetch_book")
    version, names, matching = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {typename(mod)} version {mod._version}; change its row of "
            "module_fetch_book"
        )
    return {"name": typename(mod)} | {name: getattr(mod, matching(name, mod._version)) for name in names}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Notes at each node that calls a module, `attrs_for_lowering`; in submodules that are graphs, too."""
    for node in fx_module.graph.find_nodes(op="call_module"):
        module = fx_module.get_submodule(str(node.target))
        if isinstance(module, GraphModule):
            lift_lowering_attrs_to_nodes(module)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(module)  # type: ignore[attr-defined]  # as PyTorch's
