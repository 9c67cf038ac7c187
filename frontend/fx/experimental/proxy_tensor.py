"""make_fx: runs a function on real or fake tensors, and makes a graph of the operators that ran.

    graph_module = make_fx(f)(x, y)
    print(graph_module.code)

A mode below autograd and the transforms sees every operator (ProxyTorchDispatchMode). It runs it, enters a node for it,
and remembers which tensor is the value of which node. So the graph holds what really runs: composite operators taken
apart, gradients written out, vmap's batching rules, and, under `functionalize`, no writes. What depends on values
cannot stand in a graph and is refused, unless the values are constants.

Note [Tensors are known by their memory, too]
Autograd keeps results in other tensor objects than it hands out, over the same memory. A tensor that is not known
itself is taken for the last known one that shows the same place of the same storage: it has not been written since, or
autograd would refuse it.

Source: PyTorch's torch.fx.experimental.proxy_tensor. Read next: ../graph_module.py.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate, zip_longest
from typing import Any, NamedTuple

import redispatch
from redispatch import nn
from redispatch.dispatch import (
    DispatchKey,
    OpOverload,
    Tag,
    TorchDispatchMode,
    TorchDispatchModeKey,
)
from redispatch.dispatch.autograd.node import SEQUENCE
from redispatch.dispatch.pytree import (
    is_structseq_instance,
    tree_flatten,
    tree_is_leaf,
    tree_leaves,
    tree_map,
    tree_map_only,
    tree_unflatten,
)
from redispatch.dispatch.symbolic import FUNCTIONS, ShapeEnv, Symbolic, SymInt
from redispatch.dispatch.tensor import Tensor
from redispatch.modes.fake_tensor import FakeTensor, FakeTensorMode

from .._lazy_graph_module import _make_graph_module
from .._symbolic_trace import Tracer
from ..codegen import PyTreeCodeGen
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node
from ..proxy import Proxy
from ..traceback import user_stack
from .pre_dispatch import PreDispatchTorchFunctionMode
from .proxy_slots import extract_val as extract_val
from .proxy_slots import get_proxy_slot as get_proxy_slot
from .proxy_slots import has_proxy_slot as has_proxy_slot
from .proxy_slots import is_sym_node as is_sym_node
from .proxy_slots import maybe_disable_thunkify as maybe_disable_thunkify
from .proxy_slots import maybe_enable_thunkify as maybe_enable_thunkify
from .proxy_slots import py_sym_types as py_sym_types
from .proxy_slots import set_meta as set_meta
from .proxy_slots import set_proxy_slot as set_proxy_slot
from .proxy_slots import snapshot_fake as snapshot_fake
from .proxy_slots import track_tensor as track_tensor
from .proxy_slots import track_tensor_tree as track_tensor_tree
from .symbolic_shapes import compute_unbacked_bindings, statically_known_true

# By kind of operation on symbolic numbers, the function that a graph calls.
SYMBOLIC = {
    **FUNCTIONS,
    **{kind: getattr(redispatch, f"sym_{kind}") for kind in ("max", "min", "not", "float", "ite")},
    **{name.removeprefix("_sym_"): getattr(redispatch, name) for name in dir(redispatch) if name.startswith("_sym_")},
    "and": operator.and_,
    "or": operator.or_,
    "trunc": redispatch.sym_int,
}

CONSTANT_NUMEL_LIMIT = 1  # so many elements a tensor may have whose values are followed while it is traced


class TensorMetadata(NamedTuple):
    """The value of a node's `meta["tensor_meta"]`."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]

    @property
    def summary(self) -> str:
        short = self.dtype.name.replace("float", "f").replace("uint", "u").replace("int", "i").replace("complex", "c")
        return f"{short}[{', '.join(map(str, self.shape))}]"


def metadata_of(value: Any) -> Any:
    """Returns the metadata of a tensor, or of each in a list or tuple; None for anything else."""
    if isinstance(value, Tensor):
        return TensorMetadata(value.shape, value.dtype, value.requires_grad, value.stride(), order_of(value), False, {})
    return tree_map(metadata_of, value) if isinstance(value, list | tuple) and value else None


def order_of(tensor: Tensor) -> Any:
    """Returns the memory format in which a tensor is dense, or None; of symbols nothing is asked that needs a guard."""
    if any(isinstance(one, Symbolic) for one in (*tensor.shape, *tensor.stride())):
        wanted = [*accumulate(reversed(tensor.shape[1:]), operator.mul, initial=1)][::-1]
        dense = all(statically_known_true(one == other) for one, other in zip(tensor.stride(), wanted, strict=True))
        return redispatch.contiguous_format if dense else None
    formats = redispatch.contiguous_format, redispatch.channels_last, redispatch.channels_last_3d
    return next((one for one in formats if tensor.is_contiguous(memory_format=one)), None)


class Known(NamedTuple):
    """A tensor, the proxy of the node whose value it is, and its value where that is a constant."""

    tensor: Tensor
    proxy: Proxy
    constant: Tensor | None


class PythonKeyTracer(Tracer):
    """Holds the graph of a run, and which tensor is the value of which node. outer: the tracer of the run around it."""

    record_stack_traces = True

    def __init__(self, outer: PythonKeyTracer | None = None) -> None:
        super().__init__()
        self.outer = outer
        self.known: dict[int, Known] = {}  # by identity; the entry keeps the tensor alive
        self.regions: dict[Any, GraphModule] = {}  # by function and metadata of arguments: the graph of a region
        self.by_place: dict[Any, Known] = {}  # Note [Tensors are known by their memory, too]
        self.symbols: dict[Any, Any] = {}  # by what is behind it and by its text, its node, or what makes one
        self.fakes = FakeTensorMode(allow_non_fake_inputs=True)  # of the values that nodes have in `meta["val"]`
        self.marks: list[tuple[int, str | None]] = []  # see fx.traceback.lines_of_forward

    def track(self, tensor: Tensor, proxy: Proxy, constant: Tensor | None = None) -> None:
        """Remembers that a tensor is the value of a node from now on."""
        meta = proxy.node.meta
        meta["tensor_meta"] = metadata_of(tensor)
        meta["val"] = self.faked(tensor)
        self.by_place[place_of(tensor)] = self.known[id(tensor)] = Known(tensor, proxy, constant)
        if any(isinstance(one, SymInt) for one in (*tensor.shape, *tensor.stride(), tensor.storage_offset())):
            aten = redispatch.ops.aten
            for dim, size in enumerate(tensor.shape):
                self.offer(size, aten.sym_size.int, proxy, dim)
            for dim, stride in enumerate(tensor.stride()):
                self.offer(stride, aten.sym_stride.int, proxy, dim)
            self.offer(tensor.numel(), aten.sym_numel.default, proxy)
            self.offer(tensor.storage_offset(), aten.sym_storage_offset.default, proxy)

    def offer(self, value: Any, func: Any, *args: Any) -> None:
        """Remembers how a graph comes by a symbolic number, unless it knows a way: tangents are no way for forward."""
        if isinstance(value, SymInt):
            made = functools.partial(self.create_proxy, "call_function", func, args, {}, name=f"{func._opname}_int")
            for key in (value.node, str(value)):
                known = self.symbols.get(key)
                if known is None or isinstance(known, functools.partial) and is_tangent(known.args[2][0].node):
                    self.symbols[key] = made

    def symbol_node(self, value: Symbolic) -> Node:
        """The node of a symbolic number: that of an input or a tensor's size, or the steps in which it was made."""
        text, steps = str(value), value.node.made
        by_text = self.symbols.get(text)
        found = self.symbols.get(value.node, None if steps else by_text)
        if isinstance(found, functools.partial):
            found = found()
        elif found is None:
            if not steps:
                raise RuntimeError(f"{text} is no size of a tensor in this graph, and not made of such sizes")
            found = self.create_proxy("call_function", SYMBOLIC[steps[0]], steps[1:], {})
        self.symbols[value.node] = self.symbols[text] = found
        found.node.meta.setdefault("val", value)
        return found.node

    def faked(self, value: Any) -> Any:
        """Returns a fake of a tensor, or of each in a list or tuple; a number is itself."""
        if isinstance(value, FakeTensor):
            return value.detach()
        if isinstance(value, Tensor):
            with without_modes():
                converter: Any = self.fakes.fake_tensor_converter
                elem = converter.meta_like(value, None)
            return FakeTensor(self.fakes, elem, value.device)
        return tree_map(self.faked, value) if isinstance(value, list | tuple) and value else value

    def unwrap_proxy(self, value: Any) -> Any:
        """Returns the proxy of a tensor or symbolic number that the graph computes; anything else as it is."""
        if isinstance(value, Symbolic):
            return Proxy(self.symbol_node(value), self)
        found = self.find(value) if isinstance(value, Tensor) else None
        return value if found is None else found.proxy

    def find(self, tensor: Tensor) -> Known | None:
        found = self.known.get(id(tensor))
        if found is None:
            found = self.by_place.get(place_of(tensor))
        return found

    def track_tree(self, value: Any, proxy: Any, constant: Any = None) -> None:
        """Tracks tensors in lists and tuples: each is an item of the node's value."""
        if isinstance(value, Tensor):
            self.track(value, proxy, constant)
        elif isinstance(value, Symbolic):
            proxy.node.meta["val"] = value
            self.symbols[value.node] = self.symbols[str(value)] = proxy
        elif isinstance(value, list | tuple):
            proxy.node.meta["val"] = self.faked(value)
            for index, one in enumerate(value):
                if any(isinstance(leaf, Tensor) for leaf in tree_leaves(one)):
                    self.track_tree(one, proxy[index], None if constant is None else constant[index])

    def create_leaf(self, a: Any) -> Any:
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return self.symbol_node(a) if isinstance(a, Symbolic) else super().create_leaf(a)

    def path_of_module(self, mod: nn.Module) -> str:
        """The name under which the root has a module; it gets it now if need be."""
        for name, one in self.root.named_children():
            if one is mod:
                return name
        return super().path_of_module(mod)

    def node_of(self, value: Any) -> Any:
        """Returns the node of a tensor; anything else as it is."""
        return self.create_leaf(value) if isinstance(value, Tensor | Symbolic) else value

    def tensor_node(self, tensor: Tensor) -> Node:
        found = self.find(tensor)
        if found is not None:
            return found.proxy.node
        outer = self.outer
        while outer is not None:
            if outer.find(tensor) is not None:
                raise RuntimeError(
                    f"a function within a higher-order operator uses a tensor ({tensor._summary()}) that the function "
                    "around it has computed or was given; pass it among the operands"
                )
            outer = outer.outer
        node = super().tensor_node(tensor)
        node.meta.setdefault("val", self.faked(tensor))
        return node


def is_tangent(node: Node) -> bool:
    return node.op == "placeholder" and "tangents" in str(node.target)


def place_of(tensor: Any) -> Any:
    return id(tensor._storage), tensor._offset, tuple(tensor._shape), tensor._stride, tensor._dtype


class ProxyTorchDispatchMode(TorchDispatchMode):
    """The mode that enters a node for each operator. It stands below users' modes, and above that of fake tensors.

    tracing_mode: "real" or "fake". decomposition_table: by operator, what is to be traced in its place.
    """

    _mode_key = TorchDispatchModeKey.PROXY

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__(DispatchKey.PreDispatch if pre_dispatch else None)
        self.tracer, self.tracing_mode, self.pre_dispatch = tracer, tracing_mode, pre_dispatch
        self.decomposition_table = decomposition_table or {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":
            return func(*args, **kwargs)
        result = self.decomposed(func, args, kwargs)
        return self.entered(func, args, kwargs) if result is NotImplemented else result

    def decomposed(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """The result by what stands for an operator: the table's function, or the operators that it is written in."""
        table = self.decomposition_table
        found = table.get(func, table.get(func.overloadpacket))
        if found is not None:
            with self:
                return found(*args, **kwargs)
        if self.pre_dispatch:
            return NotImplemented
        with self:
            return func.decompose(*args, **kwargs)

    def entered(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        """The result of an operator, for which a node is entered."""
        tracer = self.tracer
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, Tensor)]
        constants = self.constants(given)
        if Tag.data_dependent_output in func.tags:
            if constants is None and self.tracing_mode == "real":
                raise RuntimeError(
                    f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! "
                    "It's likely that this is caused by data-dependent control flow or similar. A graph holds for all "
                    "values: compute the alternatives and choose by torch.where, or use torch.cond"
                    f"\nIt is asked here:\n{user_stack() or ''}"
                )
            if constants is not None:
                with without_modes():
                    return func(*tree_map_only(Tensor, constants.__getitem__, args), **kwargs)
        run = func
        if func is redispatch.ops.aten.lift_fresh.default:  # each run of the graph is to have a tensor of its own
            func = redispatch.ops.aten.lift_fresh_copy.default
            run = run if self.tracing_mode != "real" else func
        proxy = tracer.create_proxy("call_function", func, args, kwargs, name=func._opname)
        tracer.marks.append((next(SEQUENCE), proxy.node.stack_trace))
        if func is redispatch.ops.aten.lift_fresh_copy.default:
            constant = args[0] if args[0].numel() <= CONSTANT_NUMEL_LIMIT else None
            with without_modes():
                constant = None if constant is None else constant.clone()
        else:
            constant = self.constant(func, args, kwargs, given, constants)
        result = run(*args, **kwargs)
        tracer.track_tree(result, proxy, constant)
        bindings = compute_unbacked_bindings(shape_env_of(result), result)
        if bindings:
            proxy.node.meta["unbacked_bindings"] = bindings
        return result

    def constants(self, given: list[Tensor]) -> dict[Tensor, Tensor] | None:
        """The values of these tensors, if they do not depend on inputs; else None."""
        found = {one: known.constant for one in given if (known := self.tracer.find(one)) is not None}
        whole = all(one in found and found[one] is not None for one in given)
        return {one: value for one, value in found.items() if value is not None} if given and whole else None

    def constant(self, func: OpOverload, args: Any, kwargs: Any, given: list[Any], constants: Any) -> Any:
        """The value of a result that depends on constants alone and is small; else None."""
        if constants is None or Tag.nondeterministic_seeded in func.tags or func.schema.is_mutable:
            return None
        with without_modes():
            result = func(*tree_map_only(Tensor, constants.__getitem__, args), **kwargs)
        parts = result if isinstance(result, list | tuple) else [result]
        small = all(isinstance(one, Tensor) and one.numel() <= CONSTANT_NUMEL_LIMIT for one in parts)
        return result if small else None


def shape_env_of(result: Any) -> ShapeEnv | None:
    """Returns the environment of the symbols in a result; None where there are none."""
    for one in tree_leaves(result):
        for number in (*one.shape, *one.stride()) if isinstance(one, FakeTensor) else (one,):
            if isinstance(number, Symbolic):
                return number.node.shape_env
    return None


@contextmanager
def without_modes() -> Iterator[None]:
    """A region in which operators run on real tensors."""
    with redispatch.utils._python_dispatch._disable_current_modes():
        yield


# make_fx --------------------------------------------------------------------------------------------------------------


def make_fx(
    f: Callable[..., Any],
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
) -> Callable[..., GraphModule]:
    """A function that traces `f` on the arguments it is called with, and gives a GraphModule of the operators that ran.

    decomposition_table: by operator, a function that is traced in its place.
    tracing_mode: "real", on the arguments themselves; "fake", on tensors without data that look like them; "symbolic",
    on such tensors whose sizes are symbols, so that the graph runs for others, too, where the guards hold. Numbers that
    elements decide are symbols in both.
    pre_dispatch: whether operators are entered as they are called, before autograd and autocast, whose regions the
    graph keeps then (pre_dispatch.py).
    record_module_stack: whether nodes note the modules around them, `meta["nn_module_stack"]`, of a module `f`, or of
    that of which `f` says that it calls it: `f._orig_mod`.
    Errors: ValueError for another mode; RuntimeError where `f` asks for values.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise ValueError(f"make_fx: expected tracing_mode 'real', 'fake' or 'symbolic', got {tracing_mode!r}")

    @functools.wraps(f)
    def traced(*args: Any) -> GraphModule:
        active = current_proxy_mode()
        tracer = PythonKeyTracer(None if active is None else active.tracer)
        mode = ProxyTorchDispatchMode(tracer, tracing_mode, pre_dispatch, decomposition_table)
        given, in_spec = tree_flatten(list(args))
        leaves = given
        names = parameter_names(f, len(args))
        with contextlib.ExitStack() as stack:
            env = None
            if tracing_mode != "real":
                fake_mode: Any = next((one.fake_mode for one in leaves if isinstance(one, FakeTensor)), None)
                fake_mode = fake_mode or FakeTensorMode(
                    allow_non_fake_inputs=_allow_non_fake_inputs,
                    shape_env=ShapeEnv(),
                    static_shapes=tracing_mode == "fake",
                )
                tracer.fakes, env = fake_mode, fake_mode.shape_env
                owners = owners_of(names, args)
                leaves = [as_fake(fake_mode, one, name) for name, one in zip(owners, leaves, strict=True)]
                stack.enter_context(fake_mode)
            with disable_proxy_modes_tracing():  # of a graph around this one
                enter_inputs(tracer, leaves, args, names)
            if pre_dispatch:
                stack.enter_context(PreDispatchTorchFunctionMode(tracer, mode))
            stack.enter_context(mode)
            if record_module_stack:
                stack.enter_context(modules_noted(tracer, getattr(f, "_orig_mod", f)))
            result = f(*tree_unflatten(leaves, in_spec))
        if all(one is leaf for one, leaf in zip_longest(args, given)) and is_written(result):
            tracer.create_node("output", "output", (written(result, tracer.node_of),), {})
        else:
            results, out_spec = tree_flatten(result)
            tracer.graph.set_codegen(PyTreeCodeGen(names, in_spec, out_spec))
            tracer.create_node("output", "output", (written(results, tracer.node_of),), {})
        name = getattr(f, "__name__", type(f).__name__)
        made = _make_graph_module(tracer.root, tracer.graph, name if name.isidentifier() else "GraphModule")
        if env is not None:
            made.shape_env = env
        return made

    return traced


@contextmanager
def modules_noted(tracer: Tracer, root: Any) -> Iterator[None]:
    """A region in which nodes note the modules, within `root`, whose `forward` makes them."""
    handles: list[Any] = []
    stack = tracer.module_stack

    def enter(path: str, module: Any, args: Any) -> None:
        stack[path] = path, f"{type(module).__module__}.{type(module).__qualname__}"

    def leave(path: str, module: Any, args: Any, result: Any) -> None:
        stack.pop(path, None)

    for path, module in root.named_modules() if isinstance(root, nn.Module) else ():
        handles.append(module.register_forward_pre_hook(functools.partial(enter, path)))
        handles.append(module.register_forward_hook(functools.partial(leave, path), always_call=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def as_fake(mode: FakeTensorMode, value: Any, name: str) -> Any:
    """An argument as it is traced: a tensor as a fake one, a whole number as a symbol where there are any."""
    if isinstance(value, redispatch.Tensor):
        return mode.from_tensor(value, source=name)
    if type(value) is int and mode.shape_env is not None and not mode.static_shapes:
        return mode.shape_env.create_unspecified_symint(value, name)
    return value


def owners_of(names: list[str], args: Any) -> list[str]:
    """For each leaf of the arguments, the name of its parameter."""
    return [name for name, arg in zip(names, args, strict=True) for _ in tree_leaves(arg)]


def is_written(result: Any) -> bool:
    """Returns whether a result can be written down as it is: leaves, and tuples, lists and dicts of them."""
    if type(result) in (tuple, list, dict) or is_structseq_instance(result):
        return all(map(is_written, result.values() if isinstance(result, dict) else result))
    return tree_is_leaf(result)


def written(result: Any, node_of: Callable[[Any], Any]) -> Any:
    """Returns such a result with a node in the place of each tensor."""
    if isinstance(result, dict):
        return {key: written(one, node_of) for key, one in result.items()}
    if isinstance(result, list | tuple):
        return (list if isinstance(result, list) else tuple)(written(one, node_of) for one in result)
    return node_of(result)


def enter_inputs(tracer: PythonKeyTracer, leaves: list[Any], args: Any, names: list[str]) -> None:
    """A placeholder for each leaf of the arguments, by the name of the parameter that it belongs to."""
    for name, leaf in zip(owners_of(names, args), leaves, strict=True):
        node_name = f"{name}_1"
        taken = {node.name for node in tracer.graph.nodes}
        number = 1
        while node_name in taken:
            number += 1
            node_name = f"{name}_{number}"
        proxy = tracer.create_proxy("placeholder", node_name, (), {})
        if isinstance(leaf, Tensor | Symbolic):
            tracer.track_tree(leaf, proxy)


def parameter_names(f: Callable[..., Any], count: int) -> list[str]:
    """Returns the names of the arguments: the function's own, where it has them."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][:count]
    return names + [f"arg{number}" for number in range(len(names), count)]


def current_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The mode that traces now, or None."""
    return redispatch.utils._python_dispatch._detect_infra_mode(TorchDispatchModeKey.PROXY)


get_proxy_mode = current_proxy_mode


def get_innermost_proxy_mode() -> ProxyTorchDispatchMode | None:
    return current_proxy_mode()


@contextmanager
def disable_proxy_modes_tracing() -> Iterator[None]:
    """A region whose operators are not entered."""
    with redispatch.utils._python_dispatch._disable_infra_mode(TorchDispatchModeKey.PROXY):
        yield


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: Any,
    kwargs: Any,
    tracing_mode: str = "real",
    decomposition_table: dict[Any, Callable[..., Any]] | None = None,
) -> GraphModule:
    """Returns the graph of a function for these arguments. Of a graph that is being traced around it, nothing is seen,
    and that one sees nothing of this."""
    leaves, spec = tree_flatten((args, kwargs))

    def flat(*leaves: Any) -> Any:
        given, named = tree_unflatten(leaves, spec)
        return func(*given, **named)

    with disable_proxy_modes_tracing():
        return make_fx(flat, decomposition_table, tracing_mode)(*leaves)


class DecompositionInterpreter(Interpreter):
    """Runs a graph, and enters what runs in `new_graph`, by the functions of a table where that has some."""

    def __init__(
        self,
        module: Any,
        new_graph: Graph,
        decomposition_table: dict[Any, Callable[..., Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = PythonKeyTracer()
        self.tracer.graph, self.tracer.root = new_graph, module
        self.mode = ProxyTorchDispatchMode(self.tracer, "real", decomposition_table=decomposition_table)

    def placeholder(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = super().placeholder(target, args, kwargs)
        self.tracer.track_tree(value, Proxy(self.new_graph.placeholder(str(target)), self.tracer))
        return value

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        value = super().get_attr(target, args, kwargs)
        self.tracer.track_tree(value, Proxy(self.new_graph.get_attr(str(target)), self.tracer))
        return value

    def output(self, target: Any, args: Any, kwargs: Any) -> Any:
        self.new_graph.output(written(args[0], self.tracer.node_of))
        return super().output(target, args, kwargs)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with self.mode:
            return super().run(*args, **kwargs)
