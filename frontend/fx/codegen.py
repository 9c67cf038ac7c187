"""A graph as Python source: what a person would have written.

    def forward(self, x):
        linear = self.linear(x);  x = None
        relu = torch.relu(linear);  linear = None
        return relu

One line a node. A value is let go after the line that uses it last. Functions are written by the names under which they
can be found; one that has no such name is put among the globals under a name of its own.

Read next: graph_module.py, which compiles the source.
"""

from __future__ import annotations

import builtins
import enum
import math
import re
import sys
import typing
from cmath import isfinite
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import GenericAlias, UnionType
from typing import Any, NamedTuple

import redispatch
from redispatch.dispatch import OpOverload, OpOverloadPacket, pytree
from redispatch.dispatch.higher_order import HigherOrderOperator
from redispatch.dispatch.tensor import Tensor

from .node import Node, qualified_name

MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "truediv": "{} / {}", "floordiv": "{} // {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}",
    "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}  # fmt: skip
INPLACE = {
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=", "imatmul": "@=",
}  # fmt: skip
REFLECTED = "add sub mul floordiv truediv mod pow lshift rshift and_ or_ xor getitem matmul".split()
PUBLIC = ("", "nn.functional", "linalg", "fft", "special", "func")  # where functions of the library have their names
ALWAYS = {
    "torch": redispatch,
    "device": redispatch.device,
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "pytree": pytree,
    "fx_pytree": sys.modules[__name__],  # for `tree_flatten_spec`
}


@dataclass(frozen=True)
class PythonCode:
    """The source of a function `forward`, and the globals with which it is to be executed.

    _lineno_map: for each line, which of the graph's nodes it is, or None.
    """

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] = field(default_factory=dict)


class Globals:
    """The names that a source uses besides those that it defines, which are `local`."""

    def __init__(self, local: Iterable[str] = ()) -> None:
        self.names: dict[str, Any] = dict(ALWAYS)
        self.local = set(local)

    def name_of(self, thing: Any) -> str:
        """An expression that gives a function or class; it is entered among the globals where need be."""
        if isinstance(thing, OpOverload | OpOverloadPacket | HigherOrderOperator):
            return qualified_name(thing)
        name = getattr(thing, "__name__", None)
        if name is not None and getattr(builtins, name, None) is thing:
            return name
        module = getattr(thing, "__module__", None) or ""
        qualname = getattr(thing, "__qualname__", name) or ""
        if module.partition(".")[0] in ("torch", "redispatch"):
            for path in library_paths(module, qualname):
                if found_at(redispatch, path) is thing:
                    return f"torch.{path}"
        text = f"{module}.{name}" if module and name else name or type(thing).__name__
        return self.own_name(re.sub(r"\W", "_", text).strip(), thing)

    def own_name(self, hint: str, thing: Any) -> str:
        name, number = hint, 0
        while name in self.names and self.names[name] is not thing or hasattr(builtins, name) or name in self.local:
            number += 1
            name = f"{hint}_{number}"
        self.names[name] = thing
        return name


def library_paths(module: str, qualname: str) -> Iterable[str]:
    """Returns where in the library a function may have its public name."""
    root, _, inside = module.partition(".")
    if root == "torch" and inside:  # PyTorch's own path: `torch.functional.split`
        yield f"{inside}.{qualname}"
    for room in PUBLIC:
        for name in {qualname, qualname.removeprefix(f"{room}_")}:
            yield f"{room}.{name}" if room else name
    if inside:
        yield f"{inside}.{qualname}"


def found_at(root: Any, path: str) -> Any:
    for atom in path.split("."):
        root = getattr(root, atom, None)
    return root


class CodeGen:
    """Makes a function of the nodes of a graph. A subclass says how inputs and outputs are taken apart."""

    _body_transformer: Callable[[list[str]], list[str]] | None = None  # Graph.on_generate_code
    _names: Globals | None = None  # while code is made

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """Returns the first line, or more, for parameters as they are written."""
        parameters = ", ".join(["self", *self.parameters(free_vars)])
        lines = [f"def forward({parameters}){maybe_return_annotation}:", *self.prologue(free_vars)]
        return "\n    ".join(lines)

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Returns the names that the code uses besides those of the graph, and what they stand for."""
        return []

    def prologue(self, free_vars: list[str]) -> list[str]:
        """Lines at the beginning, which give the placeholders their values."""
        return []

    def parameters(self, free_vars: list[str]) -> list[str]:
        return free_vars

    def generate_output(self, output_args: Any) -> str:
        """Returns the line that returns what the output node has."""
        return f"return {self.written(output_args)}"

    def written(self, value: Any) -> str:
        return written(value, self._names or Globals())

    def process_inputs(self, *args: Any) -> Any:
        """Returns the values of the placeholders for the caller's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Returns the output node's values in the caller's form."""
        return outputs

    def generate(self, nodes: Iterable[Node], root: str, verbose: bool) -> PythonCode:
        """The source, with the globals that it needs."""
        steps = list(nodes)
        names = self._names = Globals([node.name for node in steps])
        names.names |= dict(self.additional_globals())
        last = last_uses(steps)
        parameters: list[str] = []
        body: list[str] = []
        renamed: list[str] = []
        made_by: list[int | None] = []  # for each line, the number of its node
        wrapped: dict[str, None] = {}  # the functions that are steps for a tracer of this code, too
        annotation, origin = "", ""
        for number, node in enumerate(steps):
            note = f': "{summary(node)}"' if verbose and summary(node) else ""
            let_go = "".join(f"{name} = " for name in last.get(node, []))
            let_go = f";  {let_go}None" if let_go else ""
            if node.op == "placeholder":
                typed = f" : {annotated(node.type, names)}" if node.type is not None else note
                default = f" = {written(node.args[0], names)}" if node.args else ""
                parameters.append(f"{node.target}{typed}{default}")
                plain = str(node.target).lstrip("*")
                if plain != node.name:
                    renamed.append(f"{node.name} = {plain}")
                continue
            if node.op == "output":
                if node.type is not None:
                    annotation = f" -> {annotated(node.type, names)}"
                body.append(self.generate_output(node.args[0]))
                made_by.append(number)
                continue
            if verbose and origin != (origin := comment(node)):
                body.append(origin)
            if node.meta.get("is_wrapped"):
                wrapped[names.name_of(node.target)] = None
            typed = f" : {annotated(node.type, names)}" if node.type is not None else note
            body.append(f"{node.name}{typed} = {expression(node, root, names)}{inplace(node, names)}{let_go}")
            made_by += [None] * (len(body) - 1 - len(made_by)) + [number]
        self._names = None
        if self._body_transformer is not None:
            body = [line.rstrip("\n") for line in self._body_transformer([f"{line}\n" for line in body])]
        start = "\n    ".join([self.gen_fn_def(parameters, annotation), *renamed])
        source = "\n    ".join([start, *(body or ["pass"])])
        head = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in wrapped)
        first = head.count("\n") + start.count("\n") + 5  # the source begins with three empty lines
        lines = {first + at: number for at, number in enumerate(made_by)}
        return PythonCode(f"\n{head}\n\n{source}\n    ", names.names, lines)


def comment(node: Node) -> str:
    """Returns the line above a node that says where it comes from: the innermost line of the user's program."""
    if not node.stack_trace:
        return "# No stacktrace found for following nodes"
    place, *code = node.stack_trace.strip().splitlines()[-2:]
    found = re.match(r'\s*File "(.*)", line (\d+), in (.*)', place)
    if found is None or not code:
        return f"# {node.stack_trace.strip().splitlines()[-1].strip()}"
    return f"# File: {found[1]}:{found[2]} in {found[3]}, code: {code[0].strip()}"


def last_uses(nodes: list[Node]) -> dict[Node, list[str]]:
    """For each node, the values that nobody needs after it."""
    done: set[Node] = set()
    found: dict[Node, list[str]] = {}
    for node in reversed(nodes):
        over = [used for used in node.all_input_nodes if used not in done]
        done.update(over)
        if node.op not in ("output", "placeholder"):
            if not node.users and node not in done:
                over.append(node)
            found[node] = [used.name for used in over]
    return found


def expression(node: Node, root: str, names: Globals) -> str:
    """Writes the expression that a node computes."""
    target = node.target
    if node.op == "get_attr":
        return attribute(root, str(target))
    if node.op == "call_module":
        return f"{attribute(root, str(target))}({arguments(node, names)})"
    if node.op == "call_method":
        args = arguments(node, names, skip=1)
        return f"{operand(node.args[0], names)}.{target}({args})"
    assert callable(target)
    name = getattr(target, "__name__", "")
    if getattr(target, "__module__", "") == "_operator" and not node.kwargs:
        if name in MAGIC and len(node.args) == MAGIC[name].count("{}"):
            return MAGIC[name].format(*(operand(one, names) for one in node.args))
        if name in INPLACE:
            return operand(node.args[0], names)
    if target is getattr and len(node.args) == 2 and str(node.args[1]).isidentifier():
        return f"{operand(node.args[0], names)}.{node.args[1]}"
    return f"{names.name_of(target)}({arguments(node, names)})"


def inplace(node: Node, names: Globals) -> str:
    """`x += y`, behind the name that it is given."""
    name = getattr(node.target, "__name__", "")
    if node.op == "call_function" and getattr(node.target, "__module__", "") == "_operator" and name in INPLACE:
        return f";  {node.name} {INPLACE[name]} {written(node.args[1], names)}"
    return ""


def operand(value: Any, names: Globals) -> str:
    text = written(value, names)
    return text if isinstance(value, Node) or not text.startswith("-") else f"({text})"


def attribute(root: str, path: str) -> str:
    """`self.layers.weight`, `getattr(self.layers, "0")`."""
    for atom in path.split("."):
        root = f"{root}.{atom}" if atom.isidentifier() else f'getattr({root}, "{atom}")'
    return root


def arguments(node: Node, names: Globals, skip: int = 0) -> str:
    parts = [written(one, names) for one in node.args[skip:]]
    return ", ".join([*parts, *(f"{key} = {written(one, names)}" for key, one in node.kwargs.items())])


def written(value: Any, names: Globals) -> str:
    """An argument as code."""
    if isinstance(value, Node):
        return value.name
    if pytree.is_namedtuple_instance(value):
        return f"{names.name_of(type(value))}({', '.join(written(one, names) for one in value)})"
    if isinstance(value, tuple):
        return f"({', '.join(written(one, names) for one in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(written(one, names) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {written(one, names)}" for key, one in value.items()) + "}"
    if isinstance(value, slice):
        return f"slice({', '.join(written(one, names) for one in (value.start, value.stop, value.step))})"
    if isinstance(value, enum.Enum):
        return f"{names.name_of(type(value))}.{value.name}"
    if isinstance(value, OpOverload | OpOverloadPacket | HigherOrderOperator | type) or isinstance(value, Callable):  # type: ignore[arg-type]  # of the right type, which mypy cannot tell
        return names.name_of(value)
    if value is None or value is ... or isinstance(value, LITERALS) or (isinstance(value, complex) and isfinite(value)):
        return repr(value)
    return names.own_name(f"_{type(value).__name__.lower()}", value)


LITERALS = (
    bool, int, float, str, bytes, range,
    redispatch.dtype, redispatch.device, redispatch.layout, redispatch.memory_format,
)  # fmt: skip


def annotated(annotation: Any, names: Globals) -> str:
    """An annotation as code."""
    if isinstance(annotation, str) or annotation is type(None):
        return annotation if isinstance(annotation, str) else "NoneType"
    args = getattr(annotation, "__args__", None)
    if args is None or isinstance(annotation, type) and not args:
        plain = isinstance(annotation, type) or getattr(annotation, "__module__", "") == "typing"
        return names.name_of(annotation) if plain else names.own_name("annotation", annotation)
    if isinstance(annotation, UnionType):
        return " | ".join(annotated(one, names) for one in args)
    origin = annotation.__origin__
    if not isinstance(annotation, GenericAlias):  # `typing.List[int]`, which is of the class list
        origin = origin if origin is typing.Union else getattr(typing, str(annotation._name), origin)
    if not args or any(isinstance(one, list | tuple) or one is ... for one in args) or origin is typing.Callable:
        return names.own_name("annotation", annotation)
    return f"{names.name_of(origin)}[{','.join(annotated(one, names) for one in args)}]"


def summary(node: Node) -> str:
    """The dtype and shape of a node's value, if a tracer has noted it: `f32[2, 3]`."""
    value = node.meta.get("val", node.meta.get("tensor_meta"))
    if isinstance(value, Tensor):
        text = value._summary()
        return text[text.index("(") + 1 : text.rindex(")")] if text.endswith(")") else text.partition(" on ")[0]
    return getattr(value, "summary", "")


def tree_flatten_spec(tree: Any, spec: Any) -> list[Any]:
    """The leaves of a tree of this structure. ValueError for a tree of another one."""
    leaves, found = pytree.tree_flatten(tree)
    if found != spec:
        raise ValueError(f"the arguments have the structure {found}, but the function was traced with {spec}")
    return leaves


class PyTreeInfo(NamedTuple):
    """PyTorch's names for what a PyTreeCodeGen knows."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class PyTreeCodeGen(CodeGen):
    """For a function whose arguments and result are pytrees: the placeholders are the leaves of the arguments.

    names: of the arguments; in_spec: their structure; out_spec: that of the result, None where it is no tree.
    """

    def __init__(self, names: list[str], in_spec: Any, out_spec: Any) -> None:
        self.names, self.in_spec, self.out_spec = names, in_spec, out_spec

    @property
    def pytree_info(self) -> PyTreeInfo:
        return PyTreeInfo(self.names, self.in_spec, self.out_spec)

    def parameters(self, free_vars: list[str]) -> list[str]:
        return self.names

    def prologue(self, free_vars: list[str]) -> list[str]:
        if not free_vars:
            return []
        plain = [re.split("[:=]", one)[0].strip() for one in free_vars]
        notes = " ".join(f"{one};" for one in free_vars if ":" in one)
        taken = f"{', '.join(plain)}, = fx_pytree.tree_flatten_spec([{', '.join(self.names)}], self._in_spec)"
        return [notes, taken] if notes else [taken]

    def generate_output(self, output_args: Any) -> str:
        return f"return pytree.tree_unflatten({self.written(output_args)}, self._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        return tree_flatten_spec(list(args), self.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        return pytree.tree_unflatten(outputs, self.out_spec)
