"""What was recorded, as text: one line a node, or a graph for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from redispatch.dispatch.tensor import CPU, dtype

from .program import Trace
from .recorder import Call, Output, filled

SCALARS = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
           "float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16",
           "complex64": "ComplexFloat", "complex128": "ComplexDouble"}  # fmt: skip


class Name(str):
    """A node's name among the arguments: written without quotes."""

    __repr__ = str.__str__


def face(seen: Output | Any) -> str:
    """The dtype and shape of a result: `Float[2,3]`."""
    element: dtype = seen.dtype
    return f"{SCALARS.get(element.name, element.name)}[{','.join(map(str, seen.shape))}]"


def lines(trace: Trace) -> Iterator[tuple[str, str, str, list[str]]]:
    """(name, metadata, text, names of what it takes) of each input and node."""
    for number, (node, place) in enumerate(trace.inputs):
        assert node.results is not None
        yield f"%{number}", face(node.results[place]), "lazy_tensors::device_data(), device=CPU0", []
    width = len(trace.inputs)
    roots = {number: root for root, (number, _) in reversed(list(enumerate(trace.outputs)))}
    for number, (node, edge) in enumerate(zip(trace.nodes, trace.edges, strict=True)):
        call: Call = node.call  # type: ignore[assignment]  # what is to run is a call
        given = [f"%{width + one}" if one >= 0 else f"%{-1 - one}" for one in edge]
        parts = [name + (f".{place}" if place else "") for name, place in zip(given, call.places, strict=True)]
        stack = filled(call.template, [Name(one) for one in parts], CPU, node.numbers)
        said = [
            repr(value) if isinstance(value, Name) or not at else f"{argument.name}={value!r}"
            for at, (value, argument) in enumerate(zip(stack, call.op.schema.arguments, strict=True))
            if not is_quiet(value, argument)
        ]
        root = f", ROOT={roots[number]}" if number in roots else ""
        shapes = ", ".join(map(face, call.outputs))
        yield f"%{width + number}", shapes, f"{call.op.namespace}::{call.op._opname}({', '.join(said)}){root}", given


def is_quiet(value: Any, argument: Any) -> bool:
    """Whether an argument need not be written: it is its default, or says where."""
    if argument.name in ("device", "pin_memory", "layout"):
        return True
    return type(value) is type(argument.default_value) and value == argument.default_value


def text(trace: Trace) -> str:
    """The nodes, a line each: `%2 = [Float[3]] aten::mul(%0, %1)`."""
    body = "".join(f"  {name} = [{shapes}] {said}\n" for name, shapes, said, _ in lines(trace))
    return f"IR {{\n{body}}}\n"


def dot(trace: Trace) -> str:
    """The nodes as a graph that Graphviz draws."""
    found = list(lines(trace))
    at = {name: number for number, (name, *_) in enumerate(found)}
    nodes = [f'  node{at[name]} [label="{said.partition("(")[0]}\\n{shapes}"]' for name, shapes, said, _ in found]
    edges = [
        f'  node{at[one]} -> node{at[name]} [label="i={i}"]'
        for name, _, _, given in found
        for i, one in enumerate(given)
    ]
    return "\n".join(["digraph G {", *nodes, *edges, "}"]) + "\n"


def report(counts: dict[str, int], sizes: dict[int, int]) -> str:
    """The counters and the sizes of programs, as PyTorch writes them."""
    total = sum(sizes.values())
    said = []
    if total:
        ordered = sorted(size for size, times in sizes.items() for _ in range(times))
        shares = [
            (share, ordered[min(total - 1, total * share // 100)]) for share in (1, 5, 10, 20, 50, 80, 90, 95, 99)
        ]
        said = [
            "Metric: TensorsGraphSize",
            f"  TotalSamples: {total}",
            f"  Accumulator: {sum(ordered):.2f}",
            f"  Percentiles: {'; '.join(f'{share}%={size:.2f}' for share, size in shares)}",
        ]
    for name in sorted(counts):
        said += [f"Counter: {name}", f"  Value: {counts[name]}"]
    return "".join(f"{line}\n" for line in said)


__all__ = ["dot", "report", "text"]
