"""The source of a graph: a program that compiles to the same graph again.

A value that is used once, by the next statement, is written where it is used. Read next: function.py.
"""

from __future__ import annotations

import enum
import keyword
import re
from collections import Counter
from typing import Any

from redispatch import nn
from redispatch.dispatch.schema.schema import NO_DEFAULT, NONE, TENSOR, Type, _format_float
from redispatch.dispatch.tensor import Tensor, device

from .builtins import number_of
from .graph import Block, Graph, Node, Value
from .types import AS_INTS, EnumType, NamedTupleType, ObjectType, of_value, spoken

INFIX_NAMES = re.compile(r"^[A-Za-z_]\w*$")
STATEMENTS = ("prim::If", "prim::Loop", "prim::SetAttr", "prim::Print", "prim::RaiseException")
CASTS = {
    "aten::Int": "int",
    "aten::Float": "float",
    "aten::Bool": "bool",
    "aten::Complex": "complex",
    "aten::str": "str",
}
CASTING = ("float", "double", "half", "bfloat16", "long", "int", "short", "bool")
LATER = ("aten::__getitem__", "prim::GetAttr", "prim::TupleUnpack", "prim::ListUnpack", "prim::Uninitialized")


def constants_of(graph: Graph) -> dict[str, Tensor]:
    """Returns the tensors that a graph holds, by the names that its source gives them."""
    found = [node.attributes["value"] for node in graph.findAllNodes("prim::Constant")]
    return {f"c{i}": one for i, one in enumerate(one for one in found if isinstance(one, Tensor))}


def printed(function: Any) -> str:
    """Returns the source of a compiled function."""
    return Printer(function).text()


class Printer:
    """Writes one function. path_of: the name by which it calls another one; tensors: names of constants by identity."""

    def __init__(self, function: Any, path_of: Any = None, tensors: dict[int, str] | None = None) -> None:
        self.function, self.graph = function, function.graph
        self.path_of = path_of or (lambda called: called.qualified_name)
        self.names: dict[Value, str] = {}
        self.taken: set[str] = set()
        self.uses = Counter(one for node in self.graph.all_nodes() for one in node.input_values)
        for block in [self.graph, *(b for node in self.graph.all_nodes() for b in node.blocks)]:
            self.uses.update(block.results)
        own = {id(one): name for name, one in constants_of(self.graph).items()}
        self.tensors = own if tensors is None else tensors
        self.inline: dict[Value, str] = {}
        self.lines: list[str] = []

    def text(self, name: str = "", own: str = "") -> str:
        """Returns the source. In a class: under another name, after a first argument `own`."""
        params = [own] if own else []
        for param, argument in zip(self.graph.params, self.function.schema.arguments, strict=True):
            word = self.named(param, argument.name)
            plain = isinstance(param.type, ObjectType) and param.type.is_module and not own and not name
            default = "" if argument.default is NO_DEFAULT else f"={constant(argument.default)}"
            params.append(f"{word}{'' if plain else f': {spoken_type(param.type)}'}{default}")
        returns = spoken_type(self.function.schema.returns[0].type)
        self.block(self.graph, 1)
        self.flush(1, self.in_order(self.graph.results))
        self.lines.append(f"  return {', '.join(map(self.ref, self.graph.results))}")
        head = f"def {name or self.function.name}({(',' + chr(10) + '    ').join(params)}) -> {returns}:"
        return "\n".join([head, *self.lines]) + "\n"

    # Names ----------------------------------------------------------------------------------------------------

    def named(self, value: Value, name: str = "") -> str:
        """Gives a value its name in the source."""
        base = name or value.name.partition(".")[0]
        self.names[value] = self.fresh(base if INFIX_NAMES.match(base) else "_0")
        return self.names[value]

    def fresh(self, made: str) -> str:
        """Returns a name that is not taken: `x`, `x0`, `x1`, or `_0`, `_1`."""
        base, count = made.rstrip("0") if made == "_0" else made, 0
        while made in self.taken or keyword.iskeyword(made):
            made, count = f"{base}{count}", count + 1
        self.taken.add(made)
        return made

    def ref(self, value: Value) -> str:
        if value in self.inline:
            return self.inline.pop(value)
        if value in self.names:
            return self.names[value]
        assert value.node is not None and value.node._kind == "prim::Constant", value
        return self.constant(value.node)

    def constant(self, node: Node) -> str:
        value, kind = node.attributes["value"], node.output().type
        if isinstance(value, Tensor):
            return f"CONSTANTS.{self.tensors[id(value)]}"
        if value is None and kind != NONE:
            return f"annotate({spoken_type(kind)}, None)"
        return constant(value)

    # Blocks ---------------------------------------------------------------------------------------------------

    def write(self, depth: int, text: str) -> None:
        self.lines.append("  " * depth + text)

    def flush(self, depth: int, but: Any = ()) -> None:
        """Writes pending values as statements: what comes next must not be computed before them."""
        for value in [one for one in self.inline if one not in but]:
            text = self.inline.pop(value)
            self.write(depth, f"{self.named(value)} = {text}")

    def block(self, block: Block, depth: int) -> None:
        for node in block.nodes_:
            if node._kind == "prim::Constant":
                continue
            if node._kind in ("prim::If", "prim::Loop"):
                (self.branch if node._kind == "prim::If" else self.loop)(node, depth)
                continue
            self.flush(depth, self.in_order(node.input_values))
            text = self.expression(node)
            outputs = node.output_values
            if not outputs or outputs[0].type == NONE and not self.uses[outputs[0]] and len(outputs) == 1:
                self.flush(depth)
                self.write(depth, text)
            elif len(outputs) > 1 or node._kind.endswith("Unpack"):
                self.flush(depth)
                self.write(depth, f"{', '.join(map(self.named, outputs))}{',' if len(outputs) == 1 else ''} = {text}")
            elif (
                self.uses[outputs[0]] == 1
                and node._kind not in LATER
                and (outputs[0].name.isdigit() or outputs[0] in block.results)
            ):
                self.inline[outputs[0]] = text
            else:
                name = attributes_name(node) if outputs[0].name.isdigit() else ""
                self.write(depth, f"{self.named(outputs[0], name)} = {text}")

    def in_order(self, inputs: list[Value]) -> set[Value]:
        """Returns which pending values may be written inside the next expression: the last ones, in the same order."""
        pending, kept = list(self.inline), []
        for value in reversed([one for one in inputs if one in self.inline]):
            if not pending or pending[-1] is not value:
                break
            kept.append(pending.pop())
        return set(kept)

    def results(self, targets: list[Value], values: list[Value], depth: int) -> None:
        """Writes that variables get a block's results."""
        changes = [(self.names[one], self.ref(value)) for one, value in zip(targets, values, strict=True)]
        changes = [(name, text) for name, text in changes if name != text]
        if changes:
            self.write(depth, f"{', '.join(name for name, _ in changes)} = {', '.join(text for _, text in changes)}")

    def branch(self, node: Node, depth: int) -> None:
        self.flush(depth, self.in_order(node.input_values))
        condition = self.ref(node.input_values[0])
        self.flush(depth)
        for value in node.output_values:
            self.named(value)
        for head, block in zip((f"if {condition}:", "else:"), node.blocks, strict=True):
            start = len(self.lines)
            self.write(depth, head)
            self.block(block, depth + 1)
            self.flush(depth + 1, self.in_order(block.results))
            self.results(node.output_values, block.results, depth + 1)
            if len(self.lines) == start + 1:
                self.write(depth + 1, "pass")

    def loop(self, node: Node, depth: int) -> None:
        self.flush(depth, ())
        length, start, *carried = node.input_values
        (body,) = node.blocks
        turn, *params = body.params
        goes_on, *results = body.results
        for value, before, param in zip(node.output_values, carried, params, strict=True):
            name = self.named(value)
            self.names[param] = name
            self.write(depth, f"{name} = {self.ref(before)}")
        counted = is_constant(start, True) and is_constant(goes_on, True)
        if counted:
            self.write(depth, f"for {self.named(turn)} in range({self.ref(length)}):")
        else:
            first_time, limit = self.ref(start), "" if is_constant(length, 2**63 - 1) else self.ref(length)
            going, count = self.fresh("_0"), self.named(turn) if limit or self.uses[turn] else ""
            self.write(depth, f"{going} = {first_time}")
            if count:
                self.write(depth, f"{count} = 0")
            self.write(depth, f"while {going}" + (f" and {count} < {limit}:" if limit else ":"))
        first = len(self.lines)
        self.block(body, depth + 1)
        self.flush(depth + 1, self.in_order(results if counted else body.results))
        if not counted:
            names = [going, *([count] if count else []), *(self.names[value] for value in node.output_values)]
            texts = [self.ref(goes_on), *([f"{count} + 1"] if count else []), *map(self.ref, results)]
            self.write(depth + 1, f"{', '.join(names)} = {', '.join(texts)}")
        else:
            self.results(node.output_values, results, depth + 1)
        if len(self.lines) == first:
            self.write(depth + 1, "pass")

    # Expressions ----------------------------------------------------------------------------------------------

    def expression(self, node: Node) -> str:
        kind, values, attributes = node._kind, node.input_values, node.attributes
        texts = [self.ref(one) for one in values]
        listed = ", ".join(texts)
        if kind in ("prim::ListConstruct", "prim::DictConstruct"):
            made = node.output().type
            pairs = ", ".join(f"{k}: {v}" for k, v in zip(texts[::2], texts[1::2], strict=False))
            literal = f"[{listed}]" if kind == "prim::ListConstruct" else f"{{{pairs}}}"
            return f"annotate({spoken_type(made)}, {literal})" if needs_type(node) else literal
        if kind == "prim::TupleConstruct":
            made = node.output().type
            if isinstance(made, NamedTupleType):
                return f"{made}({listed})"
            return f"({listed}{',' if len(texts) == 1 else ''})"
        if kind in ("prim::TupleUnpack", "prim::ListUnpack"):
            return texts[0]
        if kind == "prim::TupleIndex":
            return f"({texts[0]})[{texts[1]}]"
        if kind == "prim::tolist":
            return f"annotate({spoken_type(node.output().type)}, ({texts[0]}).tolist())"
        if kind in ("prim::EnumName", "prim::EnumValue"):
            return f"({texts[0]}).{kind[10:].lower()}"
        if kind == "aten::__getitem__":
            return f"{texts[0]}[{texts[1]}]"
        if kind == "prim::GetAttr":
            name = attributes["name"]
            return f"{texts[0]}.{name}" if INFIX_NAMES.match(name) else f'getattr({texts[0]}, "{name}")'
        if kind == "prim::SetAttr":
            return f"{texts[0]}.{attributes['name']} = {texts[1]}"
        if kind == "prim::CallMethod":
            return f"({texts[0]}).{attributes['name']}({', '.join(texts[1:])}{', ' if texts[1:] else ''})"
        if kind in ("prim::CallFunction", "prim::PythonOp"):
            path = self.path_of(attributes["value"]) if kind == "prim::CallFunction" else f"^{attributes['name']}"
            return f"{path}({listed}{', ' if texts else ''})"
        if kind == "prim::FunctionalCall":
            parts = [
                text if name is None else f"{name}={text}"
                for name, text in zip(attributes["arguments"], texts, strict=True)
            ]
            return f"torch.nn.functional.{attributes['name']}({', '.join(parts)})"
        if kind in ("prim::unchecked_cast", "prim::Uninitialized"):
            word = "unchecked_cast" if texts else "uninitialized"
            return f"{word}({', '.join([spoken_type(node.output().type), *texts])})"
        if kind == "prim::isinstance":
            kinds = ", ".join(map(spoken_type, attributes["types"]))
            return f"isinstance({texts[0]}, {kinds if len(attributes['types']) == 1 else f'({kinds})'})"
        if kind == "prim::Print":
            return f"print({listed})"
        if kind == "prim::CreateObject":
            return f"{node.output().type}.__new__({node.output().type})"
        if kind == "prim::fork":
            return f"fork({self.path_of(attributes['value'])}, {listed})"
        if kind in CASTS:
            return f"{CASTS[kind]}({listed})"
        return self.operator(node, texts)

    def operator(self, node: Node, texts: list[str]) -> str:
        """Writes the call of an operator; what has its default at the end is left out."""
        space, _, name = node._kind.partition("::")
        if space == "aten" and name in CASTING:  # `torch.float` is a dtype
            return f"({texts[0]}).{name}()"
        path = f"torch.{name}" if space == "aten" else f"ops.{space}.{name}"
        schema = getattr(node.op, "schema", None)
        if schema is None or schema.is_vararg:
            return f"{path}({', '.join(texts)})"
        arguments = list(zip(schema.arguments, texts, node.input_values, strict=True))
        while arguments and is_default(*arguments[-1][::2]):
            arguments.pop()
        parts = [
            f"{one.name}={text}" if one.kwarg_only else text
            for one, text, value in arguments
            if not (one.kwarg_only and is_default(one, value))
        ]
        return f"{path}({', '.join(parts)})"


def is_constant(value: Value, wanted: Any = ...) -> bool:
    if value.node is None or value.node._kind != "prim::Constant":
        return False
    found = value.node.attributes["value"]
    return wanted is ... or (type(found) is type(wanted) and found == wanted)


def is_default(argument: Any, value: Value) -> bool:
    return argument.default is not NO_DEFAULT and is_constant(value) and is_constant(value, argument.default)


def needs_type(node: Node) -> bool:
    """Whether the members of a list or dict do not tell its type."""
    made, found = node.output().type, [one.type for one in node.input_values]
    wanted = made.containedTypes()
    return not found or any(one != wanted[i % len(wanted)] for i, one in enumerate(found))


def attributes_name(node: Node) -> str:
    """Returns the name of a value that has none: that of the attribute which it is."""
    return str(node.attributes["name"]) if node._kind == "prim::GetAttr" else ""


def spoken_type(kind: Type) -> str:
    """Returns a type as source has it."""
    return "int" if kind in AS_INTS else spoken(kind)


def constant(value: Any) -> str:
    """Returns a constant as source."""
    if isinstance(value, str):
        escaped = value.encode("unicode_escape").decode()
        return '"' + escaped.replace('"', '\\"').replace("'", "\\'") + '"'
    if isinstance(value, float):
        return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(str(value)) or _format_float(value)
    if isinstance(value, device):
        return f'torch.device("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(map(constant, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(constant, value))}{',' if len(value) == 1 else ''})"
    if of_value(value) in AS_INTS:
        return str(number_of(value))
    if isinstance(value, enum.Enum):
        return f"{EnumType(type(value))}.{value.name}"
    return getattr(value, "__name__", None) or repr(value)


def final(value: Any) -> str:
    """Returns the declaration of a constant of a class; nothing for one that source cannot hold."""
    name = getattr(value, "__name__", "")
    if callable(value):
        return f"Final[Function] = torch.nn.functional.{name}" if getattr(nn.functional, name, None) is value else ""
    kind = of_value(value)
    return f"Final[{spoken_type(kind)}] = {constant(value)}" if kind is not None and kind != TENSOR else ""
