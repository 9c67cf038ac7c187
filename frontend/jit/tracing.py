"""trace: runs a function or module once on examples, and makes a graph of the operators that it called.

Operators on tensors alone are seen: what Python decided by values is fixed, with a warning where it asked a tensor.
Sizes are numbers in the graph. The trace is then run on the examples and compared with the function.
Read next: archive.py.
"""

from __future__ import annotations

import difflib
import functools
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from redispatch import autograd, nn
from redispatch.dispatch import STATE, include, within
from redispatch.dispatch.layers.tracer import RECORDER, TRACER
from redispatch.dispatch.schema.schema import NONE, TENSOR, Argument, DictType, ListType, OptionalType, TupleType, Type
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.ops.copying import allclose

from .builtins import BY_NAME
from .classes import Compiler, name_of_class
from .function import RECORDING, ScriptFunction
from .graph import Graph, Node, Value, removed_dead
from .interpreter import Error
from .module import ScriptModule, TopLevelTracedModule, TracedModule, dressed
from .source import Place, Source
from .types import ObjectType, normal, of_value, spoken

PLACE = re.compile(r" # .*")
ASKED = {"__bool__": "boolean", "__int__": "integer", "__float__": "float", "__index__": "index"}


CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is only valid if the "
    "container structure does not change based on the module's inputs. Consider using a constant container "
    "instead (e.g. "
    "for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this "
    "and know the "
    "side effects, pass strict=False to trace() to allow this behavior."
)


class TracerWarning(Warning):
    """Something that a trace does not keep."""


class TracingCheckError(Error):
    """A trace that does not compute what the function does."""


class Recorder:
    """Makes nodes of operators. Fields: `graph`; `values`: the graph's value of each tensor, by identity."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.values: dict[int, Value] = {}
        self.kept: list[Any] = []  # so that identities stay theirs

    def know(self, tensor: Any, value: Value) -> None:
        self.kept.append(tensor)
        self.values[id(tensor)] = value

    def record(self, op: Any, stack: list[Any], run: Callable[[], Any]) -> Any:
        """Runs an operator and enters a node for it."""
        name = op.schema.name
        if name in ("aten::item", "aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero"):
            self.warn_of(op, stack)
        place = here()
        inputs = [
            self.value_of(one, normal(argument.type), place)
            for one, argument in zip(stack, op.schema.arguments, strict=True)
        ]
        result = run()
        node = Node(self.graph, name, inputs, place, op)
        self.graph.nodes_.append(node)
        results = result if len(op.schema.returns) > 1 else [result][: len(op.schema.returns)]
        for returned, one in zip(op.schema.returns, results, strict=True):
            value = node.add_output(normal(returned.type))
            self.note(one, value, place)
        return result

    def called(self, function: ScriptFunction, values: list[Any]) -> Any:
        """Runs a compiled function, whose call the graph has; that of a module outside of the trace is inlined."""
        first, place = function.schema.arguments[:1], here()
        method = bool(first) and isinstance(first[0].type, ObjectType)
        if method and id(values[0]) not in self.values:
            return function.run(*values)
        arguments = zip(values, function.schema.arguments, strict=True)
        inputs = [self.value_of(one, normal(argument.type), place) for one, argument in arguments]
        token = RECORDING.set(None)
        try:
            with within(STATE.get().excluding(TRACER)):
                result = function.run(*values)
        finally:
            RECORDING.reset(token)
        kind = "prim::CallMethod" if method else "prim::CallFunction"
        node = Node(self.graph, kind, inputs, place, None, name=function.name, value=function)
        self.graph.nodes_.append(node)
        self.unpack(result, node.add_output(normal(function.schema.returns[0].type), loose=function.loose))
        return result

    def note(self, result: Any, value: Value, place: Place | None) -> None:
        if isinstance(result, Tensor):
            self.know(result, value)
        elif isinstance(result, list | tuple) and result and isinstance(result[0], Tensor):
            node = Node(self.graph, "prim::ListUnpack", [value], place)
            self.graph.nodes_.append(node)
            for one in result:
                self.know(one, node.add_output(TENSOR))

    def value_of(self, given: Any, kind: Type, place: Place | None) -> Value:
        """Returns the graph's value of an argument: a known tensor, or a constant."""
        inner = kind.elem if isinstance(kind, OptionalType) else kind
        if id(given) in self.values and not isinstance(given, int | float | str | None):
            return self.values[id(given)]
        if isinstance(given, Tensor):
            if id(given) not in self.values:
                if given.requires_grad:
                    raise RuntimeError(
                        "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or "
                        f"input, or detaching the gradient\nTensor:\n{given}"
                    )
                self.know(given, self.graph.constant(given.detach(), TENSOR, place))
            return self.values[id(given)]
        if isinstance(given, list | tuple) and isinstance(inner, ListType):
            items = [self.value_of(one, inner.elem, place) for one in given]
            return self.append("prim::ListConstruct", items, inner, place)
        if isinstance(given, tuple) and isinstance(inner, TupleType):
            items = [self.value_of(one, part, place) for one, part in zip(given, inner.elems, strict=True)]
            return self.append("prim::TupleConstruct", items, inner, place)
        if isinstance(given, int | float | complex) and inner == TENSOR:
            return self.graph.constant(given, of_value(given), place)
        return self.graph.constant(given, NONE if given is None else of_value(given) or inner, place)

    def append(self, kind: str, inputs: list[Value], made: Type, place: Place | None) -> Value:
        node = Node(self.graph, kind, inputs, place)
        self.graph.nodes_.append(node)
        return node.add_output(made)

    def warn_of(self, op: Any, stack: list[Any]) -> None:
        if id(stack[0]) not in self.values:
            return
        frame, kind = sys._getframe(1), "number" if op.schema.name != "aten::equal" else "boolean"
        for _ in range(40):
            if frame is None:
                break
            if frame.f_code.co_name in ASKED:
                kind = ASKED[frame.f_code.co_name]
                break
            frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
        warnings.warn(
            f"Converting a tensor to a Python {kind} might cause the trace to be incorrect. We can't record the "
            f"data flow "
            "of Python values, so this value will be treated as a constant in the future. This means that the "
            "trace might "
            "not generalize to other inputs!",
            TracerWarning,
            stacklevel=8,
        )

    def structure(self, value: Any, where: str = "") -> Value:
        """Returns the graph's value of what the function returned."""
        if isinstance(value, Tensor):
            return self.value_of(value, TENSOR, None)
        if value is None:
            raise RuntimeError(
                "The traced function didn't return any values! Side-effects are not captured in traces, so it "
                "would be a no-op."
            )
        if isinstance(value, tuple | list):
            if isinstance(value, list):
                warnings.warn(CONTAINER.format("list"), TracerWarning, stacklevel=6)
            parts = [self.structure(one, where) for one in value]
            if isinstance(value, list) and all(one.type == TENSOR for one in parts):
                return self.append("prim::ListConstruct", parts, ListType(TENSOR), None)
            return self.append("prim::TupleConstruct", parts, TupleType(tuple(one.type for one in parts)), None)
        if isinstance(value, dict) and value:
            parts = [one for key, item in value.items() for one in (self.graph.constant(key), self.structure(item))]
            return self.append("prim::DictConstruct", parts, DictType(parts[0].type, parts[1].type), None)
        raise RuntimeError(
            "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions; got "
            f"{type(value).__name__}"
        )

    def argument(self, value: Any, name: str) -> Argument:
        """Enters an argument; tensors inside of tuples, lists and dicts are unpacked at once."""
        kind = of_value(value)
        if kind is None:
            raise RuntimeError(
                f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, "
                f"Dicts, and Tuples of Tensors can be traced"
            )
        self.unpack(value, self.graph.add_param(kind, name))
        return Argument(name, kind)

    def unpack(self, value: Any, made: Value) -> None:
        if isinstance(value, Tensor):
            self.know(value, made)
        elif isinstance(value, tuple | list):
            node = Node(
                self.graph, "prim::TupleUnpack" if isinstance(value, tuple) else "prim::ListUnpack", [made], None
            )
            self.graph.nodes_.append(node)
            for one in value:
                self.unpack(one, node.add_output(of_value(one) or TENSOR))
        elif isinstance(value, dict):
            for key, one in value.items():
                node = Node(
                    self.graph,
                    "aten::__getitem__",
                    [made, self.graph.constant(key)],
                    None,
                    BY_NAME[f"aten::__getitem__.Dict_{spoken(of_value(key) or TENSOR)}"],
                )
                self.graph.nodes_.append(node)
                self.unpack(one, node.add_output(of_value(one) or TENSOR))


def here() -> Place | None:
    """Returns the line of the program that called an operator."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(("redispatch.", "torch.", "importlib")):
        frame = frame.f_back  # type: ignore[assignment]  # None ends the loop
    if frame is None:
        return None
    place = Place.__new__(Place)
    place.source, place.line, place.column = Source("", frame.f_code.co_filename), frame.f_lineno, 0
    place.end_line, place.end_column = place.line, 0
    return place


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """A region in which the operators that are called are recorded."""
    token, other = RECORDER.set(recorder.record), RECORDING.set(recorder)
    try:
        with include(TRACER):
            yield
    finally:
        RECORDER.reset(token)
        RECORDING.reset(other)


def names_of(fn: Any, count: int) -> list[str]:
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    names = list(code.co_varnames[: code.co_argcount]) if code is not None else []
    names = names[1:] if names[:1] == ["self"] or hasattr(fn, "__self__") else names
    return [names[i] if i < len(names) else f"argument_{i + 1}" for i in range(count)]


def fresh(value: Any) -> Any:
    """Returns an example with tensors of its own, so that each is one argument."""
    if isinstance(value, Tensor):
        return (
            value.detach().requires_grad_(value.requires_grad)
            if not value.is_floating_point() or value.is_leaf
            else value.view_as(value)
        )
    if isinstance(value, tuple | list):
        return type(value)(map(fresh, value))
    return {key: fresh(one) for key, one in value.items()} if isinstance(value, dict) else value


def traced_function(
    fn: Any, args: tuple[Any, ...], name: str, owner: Any = None, kind: ObjectType | None = None, strict: bool = True
) -> ScriptFunction:
    """Returns the graph of one call."""
    graph = Graph()
    recorder = Recorder(graph)
    arguments = []
    if owner is not None:
        assert kind is not None
        own = graph.add_param(kind, "self")
        arguments.append(Argument("self", kind))
        attributes(recorder, owner, own, kind)
    args = tuple(map(fresh, args))
    arguments += [
        recorder.argument(one, word)
        for one, word in zip(
            args, names_of(fn if owner is None else owner.forward if name == "forward" else fn, len(args)), strict=True
        )
    ]
    with recording(recorder):
        result = fn(*args)
    if isinstance(result, dict) and strict:
        raise RuntimeError(CONTAINER.format("dict"))
    value = recorder.structure(result)
    graph.results = [value]
    removed_dead(graph)
    return ScriptFunction(name, graph, arguments, value.type)


def attributes(recorder: Recorder, module: Any, own: Value, kind: ObjectType) -> None:
    """Makes the parameters and buffers of a module, and of those below, known as attributes."""
    for name, one in [*module._parameters.items(), *module._buffers.items()]:
        if one is not None and id(one) not in recorder.values:
            recorder.know(one, attribute(recorder, own, name, TENSOR))
    for name, child in module._modules.items():
        if child is not None:
            inner, value = kind.attributes[name], attribute(recorder, own, name, kind.attributes[name])
            recorder.know(child, value)
            attributes(recorder, child, value, inner)  # type: ignore[arg-type]  # a module's


def attribute(recorder: Recorder, own: Value, name: str, kind: Type) -> Value:
    node = Node(recorder.graph, "prim::GetAttr", [own], None, name=name)
    recorder.graph.nodes_.append(node)
    return node.add_output(kind, name)


def type_of_traced(module: Any) -> ObjectType:
    """Returns a type for a traced module: parameters, buffers, modules, and nothing else."""
    if isinstance(module, ScriptModule):
        return module._script_type
    kind = ObjectType(name_of_class(type(module)), None, is_module=True)
    Compiler.tensors_of(module, kind)
    for name, one in module._modules.items():
        kind.attributes[name] = NONE if one is None else type_of_traced(one)
    kind.attributes["training"] = of_value(True) or NONE
    return kind


def dressed_trace(module: Any, kind: Any, cls: Any) -> Any:
    if isinstance(module, ScriptModule):
        return module
    children = {
        name: None if one is None else dressed_trace(one, kind.attributes[name], TracedModule)
        for name, one in module._modules.items()
    }
    return dressed(cls, kind, Compiler(), module._parameters, module._buffers, children, {"training": module.training})


def trace(
    func: Any, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, _force_outplace: bool = False, _module_class: Any = None,
    _compilation_unit: Any = None, example_kwarg_inputs: Any = None, _store_inputs: bool = True,
) -> Any:  # fmt: skip
    """Returns a function or module whose graph holds the operators that `func` called on the examples.

    check_trace: whether the graph is compared with another call of `func`. Errors: RuntimeError for a result that is no
    tensor, tuple or list of them. Warnings: TracerWarning where Python asked a tensor for its value.
    """
    if isinstance(func, ScriptModule | ScriptFunction):
        return func
    if example_kwarg_inputs is not None:
        if example_inputs is not None:
            raise RuntimeError("only one of example_inputs and example_kwarg_inputs can be given")
        names = names_of(func.forward if isinstance(func, nn.Module) else func, 64)
        example_inputs = tuple(example_kwarg_inputs[name] for name in names if name in example_kwarg_inputs)
    if example_inputs is None:
        raise RuntimeError("Either example_kwarg_inputs or example_inputs should be not none")
    if isinstance(func, nn.Module):
        return trace_module(func, {"forward": example_inputs}, None, check_trace, check_inputs, check_tolerance, strict)
    owner = getattr(func, "__self__", None)
    if isinstance(owner, nn.Module) and func.__name__ == "forward":
        return trace_module(
            owner, {"forward": example_inputs}, None, check_trace, check_inputs, check_tolerance, strict
        )
    args = tupled(example_inputs)
    name = getattr(func, "__name__", "forward").replace("<lambda>", "_lambda")
    made = traced_function(func, args, name, strict=strict)
    made.wrapped = func
    if check_trace:
        for one in [args, *map(tupled, check_inputs or ())]:
            check(func, made, one, check_tolerance, lambda given: traced_function(func, given, name, strict=strict))
    return made


def tupled(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, tuple | list) else (given,)


def trace_module(
    mod: Any, inputs: dict[str, Any], optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, *args: Any, **options: Any,
) -> Any:  # fmt: skip
    """Returns a module whose methods hold the operators that those of `mod` called on examples, (name -> arguments)."""
    if not isinstance(mod, nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    kind = type_of_traced(mod)
    made = dressed_trace(mod, kind, TopLevelTracedModule)
    for name, given in inputs.items():
        function = mod if name in ("forward", "__call__") else getattr(mod, name)
        word = "forward" if name == "__call__" else name
        kind.methods[word] = traced_function(function, tupled(given), word, mod, kind, strict)
        if check_trace:
            for one in [given, *(each[name] if isinstance(each, dict) else each for each in check_inputs or ())]:
                again = functools.partial(traced_function, function, name=word, owner=mod, kind=kind, strict=strict)
                check(function, getattr(made, word), tupled(one), check_tolerance, again)
    return made


def check(
    function: Any, made: Any, args: tuple[Any, ...], tolerance: float, again: Callable[[Any], ScriptFunction]
) -> None:
    """Compares a trace with the function, and with another trace.

    Errors: TracingCheckError where the graphs differ. Warnings: TracerWarning where results do.
    """
    random = [
        node
        for node in made.graph.all_nodes()
        if node.op is not None and "nondeterministic_seeded" in getattr(node.op, "tags", ())
    ]
    if random:
        warnings.warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n\t"
            + "\n\t".join(str(one).strip() for one in random)
            + "\nThis may cause errors in trace checking. To disable trace checking, pass check_trace=False to "
            "torch.jit.trace()",
            TracerWarning,
            stacklevel=4,
        )
    with autograd.no_grad():
        other = again(tuple(map(cloned, args)))
    texts = [PLACE.sub("", str(one.graph)).splitlines() for one in (made, other)]
    if texts[0] != texts[1]:
        diff = "\n".join("\t\t" + line for line in difflib.ndiff(texts[0], texts[1]))
        raise TracingCheckError(
            f"Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n\tGraph diff:\n{diff}"
        )
    with autograd.no_grad():
        wanted, found = (tensors(one(*map(cloned, args))) for one in (function, made))
    for number, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if (
            a.shape == b.shape
            and a.dtype == b.dtype
            and (
                a.is_quantized
                or allclose(
                    a.double() if not a.is_complex() else a,
                    b.double() if not b.is_complex() else b,
                    rtol=tolerance,
                    atol=tolerance,
                    equal_nan=True,
                )
            )
        ):
            continue
        warnings.warn(
            f"Output nr {number + 1}. of the traced function does not match the corresponding output of the "
            f"Python function. "
            "Detailed error:\nTensor-likes are not close!",
            TracerWarning,
            stacklevel=4,
        )


def cloned(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, tuple | list):
        return type(value)(map(cloned, value))
    return {key: cloned(one) for key, one in value.items()} if isinstance(value, dict) else value


def tensors(value: Any) -> list[Any]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [one for part in parts for one in tensors(part)]
