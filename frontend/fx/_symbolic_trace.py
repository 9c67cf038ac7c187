"""Symbolic tracing: a function or module is run once on proxies, and what it does becomes a graph.

    module = symbolic_trace(model)
    print(module.code)

Nothing is computed. The submodules that belong to the library are steps of the graph, all others are run through.
Control flow of Python runs now, once: what depends on values is refused (proxy.py). `make_fx`
(experimental/proxy_tensor.py) sees the other end, the operators that run in the end, on real values or fake ones.

Source: PyTorch's torch.fx. Read next: interpreter.py.
"""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

from redispatch import nn
from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.dispatch.pytree import tree_leaves
from redispatch.dispatch.tensor import Tensor

from ._lazy_graph_module import _make_graph_module
from .concrete_args import PH, PHBase, PHWithMeta, flattened, leaves_of
from .graph import Graph
from .graph_module import WRAPPED, GraphModule
from .node import Node
from .proxy import Proxy, Scope, ScopeContextManager, TracerBase

_LOCK = threading.RLock()
_IN_PLACE: dict[
    tuple[int, str], list[Any]
] = {}  # place -> [how many tracers want it, whether it was there, what it was]


def wrap(fn_or_name: Any) -> Any:
    """Makes a function of the calling module a step of its own for symbolic tracing; returns what it was given.

    Errors: RuntimeError for what is neither a function nor a name; NotImplementedError inside a function.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    caller = frame.f_back if frame else None
    if caller is None or caller.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    WRAPPED[id(caller.f_globals), name] = caller.f_globals
    return fn_or_name


@contextmanager
def steps_in_place(
    functions: Iterable[Callable[..., Any]], names: dict[str, Any], modules: Iterable[ModuleType] = ()
) -> Iterator[None]:
    """A region in which wrapped functions make nodes: those of `wrap`, and `functions` where `names` has them.

    modules: those whose functions do, too, called by the module's name or by one that `names` has for them.
    """
    theirs = [(vars(module), name, one) for module in modules for name, one in vars(module).items() if callable(one)]
    theirs = [(space, name, one) for space, name, one in theirs if not name.startswith("_")]
    chosen = [*functions, *(one for _, _, one in theirs)]
    own = {(id(space), name): space for space, name, _ in theirs}
    own |= {(id(names), name): names for name, value in names.items() if any(value is one for one in chosen)}
    places = {**WRAPPED, **own}
    with _LOCK:
        for place, module in places.items():
            put(place, module)
    try:
        yield
    finally:
        with _LOCK:
            for place, module in places.items():
                take_back(place, module)


def put(place: tuple[int, str], module: dict[str, Any]) -> None:
    entry = _IN_PLACE.get(place)
    if entry is None:
        name = place[1]
        function = module.get(name, getattr(builtins, name, None))
        entry = _IN_PLACE[place] = [0, name in module, function]
        if function is not None:
            module[name] = step(function)
    entry[0] += 1


def take_back(place: tuple[int, str], module: dict[str, Any]) -> None:
    entry, name = _IN_PLACE[place], place[1]
    entry[0] -= 1
    if entry[0]:
        return
    del _IN_PLACE[place]
    if entry[1]:
        module[name] = entry[2]
    else:
        module.pop(name, None)


def step(function: Any) -> Any:
    """The function that makes a node for a call with a proxy, and calls `function` otherwise."""

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        proxy = next((leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Proxy)), None)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    return called


TRACER: ContextVar[Tracer | None] = ContextVar("the tracer at work", default=None)


class Tracer(TracerBase):
    """Traces functions and modules. Override `is_leaf_module` to say which submodules stay whole.

    autowrap_modules: modules whose functions are steps of their own: `math` asks for numbers, which a proxy is not.
    autowrap_functions: those that are steps of their own wherever the traced function finds them by name.
    root: the module that is traced; `tensor_attrs`: tensors that were met and belong to no module, by the name that
    they have.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
    ) -> None:
        self.graph = Graph()
        self.root: Any = nn.Module()
        self.autowrap_modules, self.autowrap_functions = autowrap_modules, autowrap_functions
        self.submodule_paths: dict[Any, str] = {}
        self.tensor_attrs: dict[int, tuple[Tensor, str]] = {}
        self.parameters: dict[str, Proxy] = {}
        self.scope = Scope("", None)  # of the forward that is being traced
        self.module_stack: dict[str, tuple[str, Any]] = {}  # the modules around it, from the outermost
        self.module_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, Any]] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copies it; the modules of Python whose functions are steps stay what they are."""
        made = object.__new__(type(self))
        memo |= {id(one): one for one in self.autowrap_modules}
        vars(made).update({name: copy.deepcopy(value, memo) for name, value in vars(self).items()})
        return made

    # What may be overridden ---------------------------------------------------------------------------------------

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Returns whether a submodule is one step: those of the library are, containers apart."""
        return m.__module__.startswith(("redispatch.nn", "torch.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The dotted path of a submodule. NameError for a module that is none."""
        found = self.submodule_paths.get(mod)
        if found is None:
            raise NameError("module is not installed as a submodule")
        return found

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Records a call of a submodule: as a step, or as the steps of its `forward`."""
        path = self.path_of_module(m)
        calls = self.module_calls[path] = self.module_calls.get(path, 0) + 1
        key = path if calls == 1 else f"{path}@{calls - 1}"
        with ScopeContextManager(self.scope, Scope(path, type(m))):
            self.module_stack[key] = (path, type(m))
            try:
                if self.is_leaf_module(m, path):
                    return self.create_proxy("call_module", path, args, kwargs)
                return forward(*args, **kwargs)
            finally:
                del self.module_stack[key]

    def getattr(self, attr: str, attr_val: Any) -> Any:
        """Returns an attribute of a module: for a parameter, the proxy of a step that reads it."""
        if isinstance(attr_val, nn.Parameter):
            name = next((name for name, one in self.root.named_parameters() if one is attr_val), None)
            if name is not None:
                if name not in self.parameters:
                    self.parameters[name] = self.create_proxy("get_attr", name, (), {})
                return self.parameters[name]
        return attr_val

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        node = super().create_node(*args, **kwargs)
        if self.module_stack:
            node.meta.setdefault("nn_module_stack", dict(self.module_stack))
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        return node

    def create_leaf(self, a: Any) -> Any:
        if isinstance(a, Tensor):
            return self.tensor_node(a)
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_leaf(a)

    def tensor_node(self, tensor: Tensor) -> Node:
        """A step that reads a tensor: a parameter or buffer; or any other, which the root gets as a constant."""
        for name, one in (*self.root.named_parameters(), *self.root.named_buffers()):
            if one is tensor:
                return self.create_node("get_attr", name, (), {})
        known = self.tensor_attrs.get(id(tensor))
        if known is None:
            prefix = "_param_constant" if isinstance(tensor, nn.Parameter) else "_tensor_constant"
            number = 0
            while hasattr(self.root, f"{prefix}{number}"):
                number += 1
            known = self.tensor_attrs[id(tensor)] = tensor, f"{prefix}{number}"
            setattr(self.root, known[1], tensor)
        return self.create_node("get_attr", known[1], (), {})

    # Tracing ------------------------------------------------------------------------------------------------------

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function. concrete_args: values of parameters; the graph holds for these alone."""
        self.graph = Graph()
        self.parameters = {}
        signature = inspect.signature(root.forward if isinstance(root, nn.Module) else root)
        names, given = list(signature.parameters), concrete_args
        if isinstance(concrete_args, tuple) and not takes_any(signature):
            concrete_args = by_name(root, names, concrete_args)
        is_module = isinstance(root, nn.Module)
        self.root = root if is_module else nn.Module()
        self.submodule_paths = {module: name for name, module in self.root.named_modules(remove_duplicate=False)}
        function: Any = type(root).forward if isinstance(root, nn.Module) else root
        if is_an_operator(function):
            raise AssertionError(f"Expected FunctionType, got {function}: trace a function of Python that calls it")
        self.scope, self.module_stack, self.node_name_to_scope = Scope("", type(root)), {}, {}
        if inputs := self.unnamed(function, is_module, given):
            call, leaves = (lambda leaves: function(*leaves)), inputs
        else:
            args = self.create_args_for_root(function, is_module, concrete_args or {})
            call, leaves = flattened(self, functools.partial(called_plainly, function), args, names)
        before = set(vars(self.root))
        token = TRACER.set(self)
        try:
            space = getattr(inspect.unwrap(function), "__globals__", {})
            with modules_intercepted(), steps_in_place(self.autowrap_functions, space, self.autowrap_modules):
                result = call(leaves)
        finally:
            TRACER.reset(token)
            self.constants = {name: value for name, value in vars(self.root).items() if name not in before}
            if is_module:
                for name in self.constants:
                    delattr(self.root, name)
        annotation = getattr(function, "__annotations__", {}).get("return")
        returns = None if annotation in ANY else annotation
        self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returns)
        return self.graph

    def create_args_for_root(self, function: Any, is_module: bool, concrete: dict[str, Any]) -> list[Any]:
        """A placeholder for each parameter of a function, `*args` and `**kwargs` each one of them."""
        args: list[Any] = [self.root] if is_module else []
        parameters = list(inspect.signature(function).parameters.values())
        if is_module and parameters and parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
            raise RuntimeError(
                "``self`` argument cannot be part of *args expansion! Give forward a parameter `self` ahead of *args"
            )
        for parameter in parameters[1:] if is_module else parameters:
            known = parameter.name in concrete
            args.append(leaves_of(self, parameter, concrete[parameter.name]) if known else self.placeholder(parameter))
        return args

    def unnamed(self, function: Any, is_module: bool, given: Any) -> list[Any]:
        """Returns inputs for a function of `*args` alone, as many as `concrete_args` are given in order; or none."""
        if not isinstance(given, tuple) or not takes_any(
            inspect.signature(self.root.forward if is_module else function)
        ):
            return []
        inputs = [self.create_proxy("placeholder", f"input_{i}", (), {}) for i in range(len(given))]
        return [self.root, *inputs] if is_module else inputs

    def placeholder(self, parameter: inspect.Parameter) -> Proxy:
        kind = parameter.kind
        stars = "*" if kind is kind.VAR_POSITIONAL else "**" if kind is kind.VAR_KEYWORD else ""
        default = () if parameter.default is parameter.empty else (parameter.default,)
        annotation = None if parameter.annotation in (parameter.empty, *ANY) else parameter.annotation
        return self.create_proxy("placeholder", stars + parameter.name, default, {}, type_expr=annotation)


ANY = (Any, "Any")  # annotations that say nothing


def by_name(root: Any, names: list[str], concrete: tuple[Any, ...]) -> dict[str, Any]:
    """Returns the values of parameters that were given in their order."""
    if len(names) != len(concrete):
        raise RuntimeError(f"Tracing expected {len(names)} arguments but got {len(concrete)} concrete arguments")
    return dict(zip(names, concrete, strict=True))


def takes_any(signature: inspect.Signature) -> bool:
    """Returns whether a function names none of its parameters."""
    return all(one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) for one in signature.parameters.values())


def is_an_operator(function: Any) -> bool:
    """Returns whether a function has no Python inside that could be run: it calls an operator."""
    return isinstance(function, OpOverload | OpOverloadPacket) or getattr(function, "__module__", "") in OPERATORS


OPERATORS = ("torch", "torch._C._nn", "torch._C._linalg", "torch._C._special", "torch._C._fft")


def called_plainly(function: Any, args: list[Any]) -> Any:
    """The result of a function for one value a parameter, where one is what it knows as `args` of `*args`, too."""
    parameters = list(inspect.signature(function).parameters.values())
    kinds = {one.kind for one in parameters}
    if inspect.Parameter.VAR_POSITIONAL not in kinds and inspect.Parameter.VAR_KEYWORD not in kinds:
        named = {one.name: arg for one, arg in zip(parameters, args, strict=True) if one.kind is one.KEYWORD_ONLY}
        return function(*args[: len(args) - len(named)], **named)
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__"):
        raise TypeError(
            f"symbolic_trace: {function} takes any number of arguments, and how many that is can be left open in a "
            "function written in Python alone; trace a function that names them"
        )
    code = function.__code__
    flags = code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS)
    code = code.replace(co_argcount=len(args), co_posonlyargcount=0, co_kwonlyargcount=0, co_flags=flags)
    # The code keeps keyword-only parameters before `*args`, which a signature has the other way round.
    stars = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    pairs = sorted(zip(parameters, args, strict=True), key=lambda pair: pair[0].kind in stars)
    plain = FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)
    return plain(*(arg for _, arg in pairs))


# Modules under a tracer -----------------------------------------------------------------------------------------------

_INSIDE = 0


@contextmanager
def modules_intercepted() -> Iterator[None]:
    """A region in which modules ask the tracer of their thread what a call, or a parameter that is read, becomes.

    Python looks for `__call__` on a class alone, so it is the class Module that is changed, and not the modules.
    """
    global _INSIDE
    with _LOCK:
        _INSIDE += 1
        if _INSIDE == 1:
            nn.Module.__call__ = traced_call  # type: ignore[method-assign,assignment]  # self has no type there
            nn.Module.__getattr__ = traced_getattr  # type: ignore[method-assign]  # attached here
    try:
        yield
    finally:
        with _LOCK:
            _INSIDE -= 1
            if _INSIDE == 0:
                nn.Module.__call__ = PLAIN_CALL  # type: ignore[method-assign]  # attached here
                nn.Module.__getattr__ = PLAIN_GETATTR  # type: ignore[method-assign]  # attached here


PLAIN_CALL, PLAIN_GETATTR = nn.Module.__call__, nn.Module.__getattr__


def traced_call(module: Any, *args: Any, **kwargs: Any) -> Any:
    tracer = TRACER.get()
    if tracer is None:
        return PLAIN_CALL(module, *args, **kwargs)
    return tracer.call_module(module, lambda *a, **k: PLAIN_CALL(module, *a, **k), args, kwargs)


def traced_getattr(module: Any, name: str) -> Any:
    value = PLAIN_GETATTR(module, name)
    tracer = TRACER.get()
    return value if tracer is None else tracer.getattr(name, value)


def is_fx_symbolic_tracing() -> bool:
    """Returns whether a function is being traced by `symbolic_trace`."""
    return TRACER.get() is not None


is_fx_tracing = is_fx_symbolic_tracing


class ProxyableClassMeta(type):
    """The class of classes whose constructor is a step of its own when it is given proxies."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = next((leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Proxy)), None)
        if proxy is None:
            return super().__call__(*args, **kwargs)
        return proxy.tracer.create_proxy("call_function", cls, args, kwargs)


def symbolic_trace(root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A GraphModule that does what a module or function does, by its operators and those of its submodules.

    Errors: TraceError where what it does depends on values.

    >>> import redispatch as rd
    >>> import redispatch.fx
    >>> print(rd.fx.symbolic_trace(lambda x: rd.relu(x) + 1).code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        add = relu + 1;  relu = None
        return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else getattr(root, "__name__", "GraphModule")
    owner: Any = tracer.root
    if tracer.constants and isinstance(root, nn.Module):
        owner = WithConstants(root, tracer.constants)
    return _make_graph_module(owner, graph, name if name.isidentifier() else "GraphModule")


class WithConstants(nn.Module):
    """A module and the tensors that its tracing has met, as one place to take both from."""

    def __init__(self, root: nn.Module, constants: dict[str, Any]) -> None:
        super().__init__()
        self.training = root.training
        vars(self).update({**vars(root), **constants})


__all__ = [
    "PH",
    "PHBase",
    "PHWithMeta",
    "ProxyableClassMeta",
    "Tracer",
    "is_fx_symbolic_tracing",
    "is_fx_tracing",
    "modules_intercepted",
    "steps_in_place",
    "symbolic_trace",
    "wrap",
]
