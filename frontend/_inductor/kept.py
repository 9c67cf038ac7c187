"""Compiled graphs on disk: a later process takes over a graph's function, without formulas, steps or loops of its own.

    record = load(key_of(graph))        # None: lower the graph, and `store` it once its kernels are there

A record is the function's text, and where all that it names is found: kernels by the keys of their own files
(kernels/engine/cache.py), operators by name, numbers and the metadata of results as they are. It is sealed as all that
is kept is (dispatch/disk.py), and nothing in it is used unless the seal is right.

Note [Keys of graphs]
The key has the graph, node by node with the metadata of each value; the inputs' metadata; the state in which it is
compiled; the machine; and all sources of this library, by size and time. What a program changes at run time is not in
it: a graph is not kept, and none is taken over, where an operator of `aten` has a kernel that is not the library's,
where a formula is not, or under a mode or a transform.

Read next: compile_fx.py.
"""

from __future__ import annotations

import base64
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from functools import cache as once
from operator import getitem
from typing import Any

import numpy as np

import redispatch as rd
from redispatch.dispatch import STATE, OpOverload, dataclass
from redispatch.dispatch.core.registry import FALLBACKS, Names
from redispatch.dispatch.disk import digest, directory, read_sealed, write_sealed
from redispatch.dispatch.library import REGISTRATIONS
from redispatch.dispatch.rules import HERE, ROOMS, is_own
from redispatch.dispatch.specialiser.reads import STARTED
from redispatch.dispatch.tensor import Size, Tensor, device, output_spec
from redispatch.dispatch.tensor.dtypes import dtype
from redispatch.dispatch.tensor.factory import OutputSpec
from redispatch.dispatch.tensor.layouts import layout, memory_format
from redispatch.dispatch.tensor.operand import TARGET
from redispatch.kernels.cpu.blas import gemm
from redispatch.kernels.engine import cache
from redispatch.kernels.engine.compile import kept
from redispatch.kernels.engine.compile import key_of as key_of_entry
from redispatch.kernels.graphs import Launch, Nest
from redispatch.kernels.settings import settings
from redispatch.modes.fake_tensor import FakeTensor

from .._decomp import Known
from ..fx.node import Node
from .decompositions import TABLE, formula_of

NAMED = {"dtype": dtype, "layout": layout, "memory_format": memory_format}  # values that the library has by name


FOR_CPU = {"CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"}


class Unkept(Exception):
    """A graph has, or depends on, something of which another process cannot be told."""


# Values as text -------------------------------------------------------------------------------------------------------


def written(value: Any) -> Any:
    """A value as JSON has it, by its kind, and exactly. Raises Unkept for one of this process alone."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind in (float, complex):
        parts = (value.real, value.imag) if kind is complex else (value,)
        return {kind.__name__: [struct.pack("<d", part).hex() for part in parts]}
    if isinstance(value, tuple | list):
        return {"list" if isinstance(value, list) else "tuple": [*map(written, value)]}
    if isinstance(value, dict):
        return {"dict": [[written(key), written(one)] for key, one in value.items()]}
    if kind is slice:
        return {"slice": [*map(written, (value.start, value.stop, value.step))]}
    if kind is device:
        return {"device": str(value)}
    if isinstance(value, Node):
        return {"node": value.name}
    for word, known in NAMED.items():
        name = getattr(value, "name", None)
        if isinstance(value, known) and getattr(rd, str(name), None) is value:
            return {word: name}
    raise Unkept(f"a {kind.__name__}")


READ: dict[str, Callable[[Any], Any]] = {
    "float": lambda parts: struct.unpack("<d", bytes.fromhex(parts[0]))[0],
    "complex": lambda parts: complex(*(struct.unpack("<d", bytes.fromhex(part))[0] for part in parts)),
    "list": lambda items: [*map(read, items)],
    "tuple": lambda items: tuple(map(read, items)),
    "dict": lambda items: {read(key): read(one) for key, one in items},
    "slice": lambda items: slice(*map(read, items)),
    "device": device,
    "operator": lambda name: getitem if name == "getitem" else Names.operator(name),
    "spec": lambda facts: output_spec(Size(facts[0]), getattr(rd, facts[2]), device("cpu"), tuple(facts[1])),
    "array": lambda facts: np.frombuffer(base64.b64decode(facts[1]), facts[0]),
    **dict.fromkeys(NAMED, lambda name: getattr(rd, name)),
}


def read(value: Any) -> Any:
    """The value that `written`, or `known_as`, has written."""
    if not isinstance(value, dict):
        return value
    ((kind, facts),) = value.items()
    return READ[kind](facts)


def known_as(value: Any) -> Any:
    """A thing that a function's text names, as JSON has it."""
    if isinstance(value, OutputSpec):
        facts = value.metadata
        return {"spec": [list(facts.shape), list(facts.stride), facts.dtype.name]}
    if isinstance(value, np.ndarray):
        return {"array": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if value is getitem:
        return {"operator": "getitem"}
    if isinstance(value, OpOverload):
        return {"operator": value.qualified_name}
    return written(value)


# The key --------------------------------------------------------------------------------------------------------------


def key_of(graph: Any) -> str | None:
    """The key of a graph that is to be compiled; None where it is not to be kept. Note [Keys of graphs]"""
    if graph.device.type != "cpu":  # whose kernels are kept, each by itself
        return None
    try:
        nodes = list(graph.module.graph.nodes)
        check_operators({node.target for node in nodes if isinstance(node.target, OpOverload)})
        facts = [described(node) for node in nodes], [*map(metadata, graph.examples)], circumstances(), graph.alone
        return digest(library(), json.dumps(facts).encode()).hex()
    except Unkept:
        return None


def described(node: Node) -> list[Any]:
    """A node as JSON has it. Raises Unkept for one that is not an operator's."""
    target: Any = node.target
    if isinstance(target, OpOverload):
        own = target.namespace == "aten"
        target = [target.qualified_name, *([] if own else [str(target.schema), sorted(map(str, target.tags))])]
    elif target is getitem:
        target = ["getitem"]
    elif node.op not in ("placeholder", "get_attr", "output"):
        raise Unkept(f"a {node.op} of {target}")
    val = None if node.op == "output" else metadata(node.meta.get("val"))
    return [node.op, node.name, target, written(node.args), written(node.kwargs), val]


def metadata(val: Any) -> Any:
    """The metadata of a value as JSON has it."""
    if isinstance(val, tuple | list):
        return [*map(metadata, val)]
    if not isinstance(val, Tensor):
        return written(val)
    shape, strides, offset = tuple(val.shape), tuple(val.stride()), val.storage_offset()
    if not all(type(number) is int for number in (*shape, *strides, offset)):
        raise Unkept("symbols for sizes")
    if val.layout is not rd.strided or not (type(val) is FakeTensor or isinstance(val, Tensor) and is_plain(type(val))):
        raise Unkept(f"a {type(val).__name__}")
    lazy = [val.is_conj(), val.is_neg(), val._is_zerotensor()]
    return [val.dtype.name, shape, strides, offset, str(val.device), *lazy]


def is_plain(kind: type) -> bool:
    """Whether a class of tensors is the library's own, and changes nothing of what operators do."""
    return kind in (Tensor, rd.nn.Parameter, rd.nn.Buffer)


def circumstances() -> list[Any]:
    """Everything beside the graph and the library that decides what becomes of it. Raises Unkept where that is more
    than can be said."""
    state = STATE.get()
    busy = state.modes, state.function_modes, state.pre_dispatch_modes, state.levels, TARGET.get()
    if any(busy) or os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0"):
        raise Unkept("a mode, a transform, or loops that are not compiled")
    keys = state.keys
    flags = [keys.added, keys.kept, state.included, state.excluded, state.grad_enabled, state.inference]
    casts = sorted((on, str(to)) for on, to in state.autocast_dtypes.items())
    products = [str(getattr(gemm(name), "symbol", None)) for name in ("float32", "float64", "complex64", "complex128")]
    return [*flags, casts, rd.get_default_dtype().name, repr(settings()), products]


def check_operators(operators: Iterable[OpOverload]) -> None:
    """Raises Unkept where a program has changed what these do, or by which formulas they are computed."""
    if any(name.startswith("aten::") for name in REGISTRATIONS):
        raise Unkept("a kernel of a program's for an operator of the library")
    kernels = [one for several in FALLBACKS.values() for one in several]
    for op in operators:
        if op.namespace == "aten":
            kernels += [one for several in op.registrations.values() for one in several]
            if vars(op).get("py_kernels") or vars(op).get("python_key_table"):
                raise Unkept(f"a Python kernel of {op}")
    if not all(is_own(os.path.join(HERE, one.place)) for one in kernels):  # some places begin at the rooms
        raise Unkept("a kernel of a program's")
    formula_of(None)
    if not all(map(is_formula, TABLE.values())):
        raise Unkept("a formula of a program's")


def is_replaced(op: OpOverload) -> bool:
    """Whether a program has given an operator of the library another kernel for the CPU."""
    if op.namespace != "aten":
        return False
    kernels = [one for key, several in op.registrations.items() if key.name in FOR_CPU for one in several]
    python = vars(op).get("py_kernels") or vars(op).get("python_key_table")
    return bool(python) or not all(is_own(os.path.join(HERE, one.place)) for one in kernels)


def is_formula(function: Any) -> bool:
    """Whether a function, and what is in its cells, is the library's."""
    if isinstance(function, OpOverload | Known) or not callable(function):
        return True
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    return code is not None and is_own(code.co_filename) and all(is_formula(cell.cell_contents) for cell in cells)


@once
def library() -> bytes:
    """A digest of the machine, and of the library's sources, by size and time. Raises Unkept where they have changed
    since this process began, or are no files."""
    facts = []
    for path, found in sources():
        if max(found.st_mtime, found.st_ctime) >= STARTED:
            raise Unkept(f"{path} is new")
        facts.append((path, found.st_size, found.st_mtime_ns, found.st_ctime_ns))
    if not facts:
        raise Unkept("the library's sources are no files")
    return digest(cache._machine().encode(), repr(sorted(facts)).encode())


def sources() -> Iterator[tuple[str, os.stat_result]]:
    """Yields the library's sources, and what the system says of them."""
    pending = [os.path.join(HERE, room) for room in ROOMS] or [HERE]
    while pending:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name.endswith(".py"):
                        yield entry.path, entry.stat()
                    elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                        pending.append(entry.path)
        except OSError:
            raise Unkept("a folder of the library cannot be read") from None


# Records --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """A graph's function. known: what its text names, but for kernels; kernels: (name, key, how it is launched)."""

    text: str
    known: dict[str, Any]
    attributes: dict[str, str]
    kernels: list[Any]

    def names(self, graph: Any) -> dict[str, Any] | None:
        """All that the text names; None where a kernel is not on disk any more, or is damaged."""
        found: dict[str, Any] = {name: read(value) for name, value in self.known.items()}
        found |= {name: graph.of_module(target) for name, target in self.attributes.items()}
        for name, key, launch in self.kernels:
            entry = None if key is None else kept(key, name)
            if key is not None and entry is None:
                return None
            found[name] = entry if launch is None else Launch(*launch).of(entry)
        return found


def load(key: str | None) -> Record | None:
    """The record of a key, if there is one, and the operators that it needs are as they were."""
    folder = directory(warns=False)
    payload = None if key is None or folder is None else read_sealed(folder / f"{key}.graph", key)
    if payload is None:
        return None
    operators, *parts = json.loads(payload)
    try:
        check_operators(map(Names.operator, operators))
    except Unkept:
        return None
    return Record(*parts)


def store(key: str | None, graph: Any, entries: dict[str, Any]) -> None:
    """Keeps a graph that was lowered, with the entries of its kernels. Failing to is no error."""
    folder = directory(warns=False)
    if key is None or folder is None:
        return
    try:
        record = recorded(graph, entries)
        write_sealed(folder / f"{key}.graph", key, json.dumps(record).encode())
    except (Unkept, OSError):
        return


def recorded(graph: Any, entries: dict[str, Any]) -> list[Any]:
    """Returns the bytes that `load` reads. Raises Unkept for what is of this process alone."""
    operators = {node.target for node in graph.graph.nodes if isinstance(node.target, OpOverload)}
    check_operators(operators)
    attributes = {node.name: node.target for node in graph.graph.nodes if node.op == "get_attr"}
    known = {name: known_as(value) for name, value in graph.known.items() if name not in attributes}
    kernels = []
    for one in graph.kernels():
        key = key_of_entry(entries[one.name])
        if key is None and entries[one.name] is not None:
            raise Unkept("a kernel that is not on disk")
        kernels.append([one.name, key, one.launch if isinstance(one, Nest) else None])
    return [sorted(op.qualified_name for op in operators), graph.text, known, attributes, kernels]
