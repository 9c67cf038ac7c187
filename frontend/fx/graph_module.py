"""GraphModule: a module whose `forward` is the code of a graph.

    module = GraphModule(root, graph)
    print(module.code)

It has the parameters, buffers and submodules of `root` that the graph speaks of. Each GraphModule is of a class of its
own, which has the compiled `forward`; after a change of the graph, `recompile()` makes it anew.

Read next: interpreter.py, which runs a graph node by node.
"""

from __future__ import annotations

import copy
import itertools
import linecache
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, partialmethod
from operator import attrgetter
from pathlib import Path
from typing import Any
from weakref import finalize

from redispatch import nn
from redispatch.dispatch.inspection.trace import VIEWS

from .codegen import PythonCode, PyTreeCodeGen
from .graph import Graph

_NUMBER = itertools.count(1)


NOT_COPIED = ("_graph", "_code", "_lineno_map")
# The functions that are steps for a tracer, see fx.wrap: (which module, the name in it) -> the module's names
WRAPPED: dict[tuple[int, str], dict[str, Any]] = {}


class GraphModule(nn.Module):
    """See above."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """An object of a class of its own, which is to have the compiled `forward`."""
        base = next(kind for kind in cls.__mro__ if "_generated" not in vars(kind))
        return object.__new__(type("GraphModuleImpl", (base,), {"_generated": True}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule") -> None:
        """root: a module, or a dict from dotted paths to tensors and modules; what the graph speaks of is taken over.

        Errors: RuntimeError where the graph speaks of what a dict does not have.
        """
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = root.training
        wanted = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        for target in sorted(dict.fromkeys(wanted), key=lambda path: path.count(".")):
            if isinstance(root, dict):
                if target not in root:
                    raise RuntimeError(
                        f"a node referenced target {target} but that target was not provided in the dict given as root"
                    )
                _assign(self, target, root[target])
            elif found := _find(root, target):
                _assign(self, target, found[0])
        self.meta: dict[str, Any] = {}  # what tracers and passes note of the whole
        self._graph = graph
        self.graph = graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        """Takes on a graph (a copy of it, if another module has it) and compiles it."""
        if graph.owning_module is not None and graph.owning_module is not self:
            graph = copy.deepcopy(graph)
        self._graph = graph
        graph.owning_module = self
        self.recompile()

    def recompile(self) -> PythonCode:
        """Makes `forward` of the graph as it is now. Tracebacks and the debugger show its lines."""
        codegen = self._graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            self._in_spec, self._out_spec = codegen.in_spec, codegen.out_spec
        python_code = self._graph.python_code("self")
        self._code, self._lineno_map = python_code.src, python_code._lineno_map
        namespace = dict(python_code.globals)
        former = getattr(type(self).__dict__.get("forward"), "__globals__", None)
        type(self).forward = _method_from_src("forward", self._code, namespace)
        if any(place == id(namespace) for place, _ in WRAPPED):  # by the lines in front of the code
            finalize(type(self), forget, id(namespace))
        forget(id(former))
        return python_code

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self._code

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The source as that of a module class, with the dtypes and shapes that the tracer noted, and with the
        submodules that are graphs themselves; printed, unless `print_output` is false."""
        text = readable(self, type(self).__name__) + "\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str, module_name: str = "FxModule") -> None:
        """Writes a package whose module `module_name` computes the same: its code, and its tensors and submodules in
        files of their own. Pickled classes must be importable where it is read."""
        written_to(self, folder, module_name)

    # Hooks --------------------------------------------------------------------------------------------------------

    def _hook(self, event: str, hook: Callable[..., Any]) -> None:
        vars(self).setdefault(f"_{event}_node_hooks", []).append(hook)

    def _unhook(self, event: str, hook: Callable[..., Any]) -> None:
        vars(self)[f"_{event}_node_hooks"].remove(hook)

    _register_create_node_hook = partialmethod(_hook, "create")  # called with each new node
    _register_erase_node_hook = partialmethod(_hook, "erase")  # called with each node that goes
    _register_replace_node_hook = partialmethod(_hook, "replace")  # called with a node, the new one's name, and a user
    _unregister_create_node_hook = partialmethod(_unhook, "create")
    _unregister_erase_node_hook = partialmethod(_unhook, "erase")
    _unregister_replace_node_hook = partialmethod(_unhook, "replace")

    @contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """A region in which a function is told of each use that goes from one node to another."""
        self._hook("replace", f)
        try:
            yield
        finally:
            self._unhook("replace", f)

    @contextmanager
    def _set_create_node_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """A region in which a function is told of each new node."""
        self._hook("create", f)
        try:
            yield
        finally:
            self._unhook("create", f)

    # Submodules ---------------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Puts a module at a dotted path; empty modules come to be on the way. False where something else is there."""
        owner: Any = self
        *path, last = target.split(".")
        for atom in path:
            found = getattr(owner, atom, None)
            if found is None:
                found = nn.Module()
                owner.add_module(atom, found)
            if not isinstance(found, nn.Module):
                return False
            owner = found
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Takes out the module at a dotted path; whether there was one."""
        path, _, last = target.rpartition(".")
        owner: Any = self
        for atom in path.split(".") if path else ():
            owner = getattr(owner, atom, None)
        if not isinstance(getattr(owner, last, None), nn.Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Takes out the modules that the graph does not speak of."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("call_module", "get_attr"):
                path = str(node.target).split(".")
                used.update(".".join(path[: end + 1]) for end in range(len(path)))
                found = _find(self, str(node.target))
                if node.op == "call_module" and found:
                    used.update(f"{node.target}.{name}" for name, _ in found[0].named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # Copies -------------------------------------------------------------------------------------------------------

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made = _empty(type(self).__name__)
        memo[id(self)] = made
        state = {key: value for key, value in vars(self).items() if key not in NOT_COPIED}
        vars(made).update(copy.deepcopy(state, memo))
        made.graph = copy.deepcopy(self._graph, memo)
        return made

    def __copy__(self) -> GraphModule:
        made = _empty(type(self).__name__)
        vars(made).update({key: value for key, value in vars(self).items() if key not in NOT_COPIED})
        made.graph = copy.deepcopy(self._graph)
        return made

    def __reduce__(self) -> Any:
        state = {key: value for key, value in vars(self).items() if key not in NOT_COPIED}
        return _restored, (type(self).__name__, state, self._graph)

    def _repr_html_(self) -> str:
        """Returns the picture of the graph, for notebooks."""
        return VIEWS().graph(self)._repr_html_()

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )


def _exec_with_source(src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None) -> None:
    """Executes code whose lines tracebacks and the debugger show. co_fields: `co_filename` is what they call it."""
    name = f"<fx graph {next(_NUMBER)}>"
    if co_fields:
        name = f"{name} from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in {co_fields['co_name']}"
    linecache.cache[name] = len(src), None, src.splitlines(True), name
    exec(compile(src, name, "exec"), globals)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """Returns the function of this name in code. globals: with which it is executed, and which it goes on to use."""
    _exec_with_source(src, globals, co_fields)
    found: Callable[..., Any] = globals[method_name]
    return found


_forward_from_src = partial(_method_from_src, "forward")


def forget(namespace: int) -> None:
    """Lets go of the functions that are steps in the code of a graph that is no more."""
    for place in [place for place in WRAPPED if place[0] == namespace]:
        del WRAPPED[place]


def _empty(class_name: str) -> GraphModule:
    return GraphModule({}, Graph(), class_name)


def _restored(class_name: str, state: dict[str, Any], graph: Graph) -> GraphModule:
    made = _empty(class_name)
    vars(made).update(state)
    made.graph = graph
    return made


def _find(root: Any, path: str) -> list[Any]:
    """[what is at a dotted path], or nothing."""
    for atom in path.split("."):
        if not hasattr(root, atom):
            return []
        root = getattr(root, atom)
    return [root]


def _assign(module: nn.Module, path: str, value: Any) -> None:
    """Puts a tensor or module at a dotted path."""
    owner: Any = module
    *way, last = path.split(".")
    for atom in way:
        if not hasattr(owner, atom):
            setattr(owner, atom, nn.Module())
        owner = getattr(owner, atom)
    if hasattr(owner, last):
        return
    if isinstance(value, nn.Parameter | nn.Module) or not hasattr(value, "_keyset"):
        setattr(owner, last, value)
    else:
        owner.register_buffer(last, value)


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    """Returns whether there is something at a dotted path."""
    return bool(_find(model, attr_name))


def _get_attr(model: nn.Module, attr_name: str) -> Any:
    """Returns what is at a dotted path. AttributeError where there is nothing."""
    return attrgetter(attr_name)(model)


def _del_attr(model: nn.Module, attr_name: str) -> None:
    """Takes out what is at a dotted path."""
    path, _, last = attr_name.rpartition(".")
    delattr(_get_attr(model, path) if path else model, last)


def _assign_attr(from_obj: Any, to_module: nn.Module, target: str) -> None:
    """Puts something at a dotted path, in the place of what is there: a tensor as a buffer."""
    if _has_attr(to_module, target):
        _del_attr(to_module, target)
    _assign(to_module, target, from_obj)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Puts at a dotted path what another module has there."""
    _assign_attr(_get_attr(from_module, target), to_module, target)


def readable(module: GraphModule, name: str) -> str:
    code = module._graph.python_code("self", verbose=True).src.strip("\n").rstrip()
    lines = [f"class {name}(torch.nn.Module):", *(f"    {line}".rstrip() for line in code.splitlines())]
    for child_name, child in module.named_children():
        if isinstance(child, GraphModule):
            lines += ["", *(f"    {line}".rstrip() for line in readable(child, child_name).splitlines())]
    return "\n".join(lines)


def written_to(module: GraphModule, folder: str, name: str) -> None:
    """Writes what `to_folder` says."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    parts = {
        "add_module": dict(module.named_children()),
        "register_parameter": dict(module.named_parameters(recurse=False)),
        "register_buffer": dict(module.named_buffers(recurse=False)),
    }
    made = ["super().__init__()"]
    for method, owned in parts.items():
        for own, value in owned.items():
            (place / f"{own}.pickle").write_bytes(pickle.dumps(value))
            made.append(f'self.{method}("{own}", pickle.loads((HERE / "{own}.pickle").read_bytes()))')
    forward = "\n".join(f"    {line}".rstrip() for line in module.code.strip("\n").splitlines())
    init = "\n        ".join(made)
    (place / "module.py").write_text(
        f"{MODULE}\n\nclass {name}(torch.nn.Module):\n    def __init__(self):\n        {init}\n\n{forward}\n"
    )
    (place / "__init__.py").write_text("from .module import *\n")


MODULE = """import pickle
from math import inf, nan
from pathlib import Path

import redispatch as torch
from redispatch import device
from redispatch.utils import _pytree as pytree

HERE = Path(__file__).parent
NoneType = type(None)
"""
