"""Runs graphs: each node is a step on a frame of registers, an operator of the registry is called as Python calls it.

So whatever the dispatcher does for a call it does for a node: autograd records, modes and subclasses see, transforms
batch. An error tells the program's own lines. Read next: code.py.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from redispatch import autograd, nn
from redispatch.dispatch.core.operator import OpOverload
from redispatch.dispatch.schema.schema import Type
from redispatch.futures import Future

from .builtins import Builtin, Raised
from .graph import Block, Graph, Node, Value
from .types import NamedTupleType, ObjectType, is_of

Frame = list[Any]
Step = Callable[[Frame], None]


class Error(RuntimeError):
    """An exception that a program raised."""


FAILED = (
    "The following operation failed in the TorchScript interpreter.\n"
    "Traceback of TorchScript (most recent call last):\n"
)


class ScriptObject:
    """An instance of a class whose Python is not here: an archive brought it."""

    def __init__(self, kind: ObjectType) -> None:
        self._script_type = kind

    def __getattr__(self, name: str) -> Any:
        method = None if name.startswith("__") else self._script_type.methods.get(name)
        if method is None:
            raise AttributeError(f"'{self._script_type}' object has no attribute or method '{name}'")
        return lambda *args, **kwargs: method(self, *args, **kwargs)


class Program:
    """A graph made ready to run: registers are numbered, and each node is a function of the frame."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.name, self.graph = name, graph
        self.registers: dict[Value, int] = {}
        self.constants: list[tuple[int, Any]] = []
        self.params = [self.register(value) for value in graph.params]
        self.steps = self.block(graph)
        self.results = [self.register(value) for value in graph.results]
        self.regions = graph.findNode("aten::set_grad_enabled") is not None

    def register(self, value: Value) -> int:
        return self.registers.setdefault(value, len(self.registers))

    def run(self, args: list[Any]) -> Any:
        """Returns the graph's only result, or a tuple of several."""
        frame: Frame = [None] * len(self.registers)
        for place, value in self.constants:
            frame[place] = value
        for place, value in zip(self.params, args, strict=True):
            frame[place] = value
        before = autograd.is_grad_enabled() if self.regions else None
        try:
            for step in self.steps:
                step(frame)
        except BaseException:
            if before is not None:  # an error inside of `with` ends it, too
                autograd.set_grad_enabled(before)
            raise
        results = [frame[place] for place in self.results]
        return results[0] if len(results) == 1 else tuple(results)

    def block(self, block: Block) -> list[Step]:
        return [step for node in block.nodes_ if (step := self.step(node)) is not None]

    def step(self, node: Node) -> Step | None:
        """Returns what runs a node; None for a constant, which is in its register from the beginning."""
        inputs = [self.register(value) for value in node.input_values]
        outputs = [self.register(value) for value in node.output_values]
        if node._kind == "prim::Constant":
            self.constants.append((outputs[0], node.attributes["value"]))
            return None
        if node._kind in ("prim::If", "prim::Loop"):
            return (self.branch if node._kind == "prim::If" else self.loop)(node, inputs, outputs)
        return self.guarded(node, function_of(node), inputs, outputs)

    def guarded(self, node: Node, function: Callable[..., Any], inputs: list[int], outputs: list[int]) -> Step:
        one = len(outputs) == 1 and not node._kind.endswith("Unpack")

        def step(frame: Frame) -> None:
            try:
                result = function(*[frame[place] for place in inputs])
                if one:
                    frame[outputs[0]] = result
                elif outputs:
                    if len(result) != len(outputs):
                        raise RuntimeError(f"Expected {len(outputs)} elements in a list but found {len(result)}")
                    for place, value in zip(outputs, result, strict=True):
                        frame[place] = value
            except Exception as problem:
                raise self.told(node, problem) from problem

        return step

    def branch(self, node: Node, inputs: list[int], outputs: list[int]) -> Step:
        (condition,) = inputs
        arms = [(self.block(one), [self.register(value) for value in one.results]) for one in node.blocks]

        def step(frame: Frame) -> None:
            steps, results = arms[0] if frame[condition] else arms[1]
            for one in steps:
                one(frame)
            for place, result in zip(outputs, [frame[one] for one in results], strict=True):
                frame[place] = result

        return step

    def loop(self, node: Node, inputs: list[int], outputs: list[int]) -> Step:
        (body,) = node.blocks
        turns, start, *carried = inputs
        turn, *params = [self.register(value) for value in body.params]
        steps = self.block(body)
        goes_on, *results = [self.register(value) for value in body.results]

        def step(frame: Frame) -> None:
            values = [frame[one] for one in carried]
            count, going = 0, frame[start]
            while going and count < frame[turns]:
                frame[turn] = count
                for place, value in zip(params, values, strict=True):
                    frame[place] = value
                for one in steps:
                    one(frame)
                values = [frame[one] for one in results]
                going, count = frame[goes_on], count + 1
            for place, value in zip(outputs, values, strict=True):
                frame[place] = value

        return step

    def told(self, node: Node, problem: Exception) -> Exception:
        """Returns an error with the program's lines, of PyTorch's class for it."""
        head = FAILED
        where = node.place.pointed(f", in {self.name}") + "\n" if node.place is not None else ""
        text = str(problem)
        if text.startswith(head):  # it was told already, in a function that this one called
            return type(problem)(f"{head}{where.rstrip(chr(10))}\n{text.removeprefix(head)}")
        if isinstance(problem, Raised):
            return Error(f"{head}{where}{text}\n")
        kind: type[Exception] = NotImplementedError if isinstance(problem, NotImplementedError) else RuntimeError
        said = f"{type(problem).__name__}: " if node._kind == "prim::PythonOp" else ""
        return kind(f"{head}{where}{kind.__name__}: {said}{text}\n")


def function_of(node: Node) -> Callable[..., Any]:
    """Returns what a node does to its inputs."""
    op, attributes = node.op, node.attributes
    if isinstance(op, OpOverload):
        return _operator(op, len(op.schema.returns))
    if isinstance(op, Builtin):
        return op.function
    if node._kind == "prim::PythonOp":
        return op
    if node._kind == "prim::FunctionalCall":
        return _functional(attributes["name"], attributes["arguments"])
    if node._kind == "prim::ModuleCall":
        return lambda owner, *values: getattr(twin(owner), attributes["name"])(*values)
    if node._kind in ("prim::GetAttr", "prim::SetAttr"):
        name = attributes["name"]
        return (
            operator.attrgetter(name)
            if node._kind == "prim::GetAttr" and "." not in name
            else _attribute(node._kind, name)
        )
    if node._kind in ("prim::CallFunction", "prim::CallMethod"):
        return attributes["value"].run
    if node._kind == "prim::tolist":
        return functools.partial(listed, node.output().type)
    if node._kind == "prim::isinstance":
        kinds = attributes["types"]
        return lambda value: any(is_of(value, one) for one in kinds)
    if node._kind == "prim::TupleConstruct":
        kind = node.output().type
        return (lambda *v: kind.python(*v)) if isinstance(kind, NamedTupleType) and kind.python else lambda *v: v
    if node._kind == "prim::CreateObject":
        return _maker(node.output().type)
    if node._kind == "prim::fork":
        return lambda *values: forked(attributes["value"], values)
    return SIMPLE[node._kind]


def listed(kind: Type, x: Any) -> Any:
    found = x.tolist()
    if not is_of(found, kind):
        raise RuntimeError(
            "Output annotation element type and runtime tensor element type must match for tolist(): "
            f"{kind} is declared for a tensor of {x.dim()} dimensions and {x.dtype}"
        )
    return found


def _operator(op: OpOverload, results: int) -> Callable[..., Any]:
    start = op.schema.kwarg_only_start
    names = [argument.name for argument in op.schema.arguments[start:]]
    if not names:
        return op
    return lambda *values: op(*values[:start], **dict(zip(names, values[start:], strict=True)))


def _functional(name: str, arguments: list[str | None]) -> Callable[..., Any]:
    function = getattr(nn.functional, name)
    count = arguments.count(None)
    named = [str(name) for name in arguments[count:]]
    return lambda *values: function(*values[:count], **dict(zip(named, values[count:], strict=True)))


def twin(owner: Any) -> Any:
    """Returns one of the library's own modules with the contents of a compiled one, whose methods are Python."""
    made = owner.__dict__.get("_twin")
    if made is None:
        cls = owner._script_type.python
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.__dict__.update(
            owner._plain(), _parameters=owner._parameters, _buffers=owner._buffers, _modules=owner._modules
        )
        owner.__dict__["_twin"] = made
    made.__dict__["training"] = owner.training
    return made


def _attribute(kind: str, name: str) -> Callable[..., Any]:
    if kind == "prim::GetAttr":
        return lambda owner: getattr(owner, name)
    return lambda owner, value: setattr(owner, name, value)


def _maker(kind: Any) -> Callable[[], Any]:
    if kind.python is None:
        return lambda: ScriptObject(kind)
    return lambda: object.__new__(kind.python)


def forked(function: Any, values: tuple[Any, ...]) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(function.run(*values))
    return future


SIMPLE: dict[str, Callable[..., Any]] = {
    "prim::ListConstruct": lambda *values: list(values),
    "prim::DictConstruct": lambda *values: dict(zip(values[::2], values[1::2], strict=True)),
    "prim::TupleUnpack": tuple,
    "prim::ListUnpack": tuple,
    "prim::TupleIndex": operator.getitem,
    "prim::unchecked_cast": lambda value: value,
    "prim::EnumValue": operator.attrgetter("value"),
    "prim::Uninitialized": lambda: None,
}
