"""The CPU's loops on a GPU: a thread for each step of a range.

`loop(lo, hi, ...)` is compiled as it is, and a thread calls it for a range of one. Arrays are addresses, except those
whose length a loop asks for, the sizes of dimensions: these are tuples, so that a kernel knows how many there are.
Other tables (strides, weights) are sent to the device once, and kept by their content. Memory to work in is one piece
for all threads, of which each has its part.

That is right for every loop, and fast for those whose steps are many and short. Read next: `indexing.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from redispatch.dispatch.tensor.operand import DTYPES, Scratch

from ..engine.compile import Kernel as Loop
from ..engine.program import Program
from .compiler import CUDA, Source
from .elementwise import storage_type
from .intrinsics import advanced
from .launch import Kernels, Launch

BLOCK = 128  # threads
WORDS = {"uint64", "uint32", "int32", "int64", "float32", "bool_"}
Address = int


@dataclass(frozen=True, slots=True)
class LoopSource(Source):
    """A kernel that calls a loop, which is compiled with what it was given."""

    loop: Loop

    def program(self) -> Program:
        program = self.loop.program()
        program.add_text(self.name, self.text, {**self.given, "cuda": CUDA})
        return program


class Form(NamedTuple):
    """The form of a loop's argument on a device: "tuple" of so many numbers, "table", "array", "scratch", "number"."""

    kind: str
    type: str
    many: int = 0


@dataclass(eq=False)
class DeviceLoop:
    """A loop with its signature: `f(lo, hi, *args)` launches it in the place that `room` says.

    room: who is asked for the driver, the stream, for tables' addresses and for memory.
    """

    loop: Loop
    signature: tuple[str, ...]
    room: Callable[[], Any]
    facts: tuple[frozenset[int], frozenset[int]] | None = None

    def __post_init__(self) -> None:
        self.kernels = Kernels(self.source)

    def whole(self, n: int, args: Sequence[Any], work: int) -> None:
        """For pool.py: one launch covers all of a range, and the room is the calling thread's."""
        self(0, n, *args)

    def __call__(self, lo: int, hi: int, *args: Any) -> None:
        steps = hi - lo
        if steps <= 0:
            return
        room = self.room()
        forms, values, held = [], [], []
        for k, (given, kind) in enumerate(zip(args, self.signature[2:], strict=True)):
            form, numbers, keep = self.argument(room, k, given, kind, steps)
            forms.append(form)
            values += numbers
            held.append(keep)
        where = Launch(self.kernels[tuple(forms)], (-(-steps // BLOCK), 1, 1), (min(BLOCK, -(-steps // 32) * 32), 1, 1))
        room.launch(where, [steps, lo, *values])

    def argument(self, room: Any, k: int, given: Any, kind: str, steps: int) -> tuple[Form, list[Any], Any]:
        """Returns the form of an argument, the numbers by which it is passed, and what must live until the launch."""
        if isinstance(given, Scratch):
            piece = room.memory(given.each * steps, given.dtype)
            return Form("scratch", given.dtype), [piece.address, given.each], piece
        if isinstance(given, np.ndarray):
            sized, written = self.uses()
            if k in written:
                raise NotImplementedError(f"{self.loop.name} writes to the CPU's memory, and so runs on no device")
            if k in sized:
                numbers = given.tolist() or [1]  # no dimensions are one of size 1
                return Form("tuple", "int64", len(numbers)), numbers, None
            return Form("table", given.dtype.name), [room.table(given)], None
        if kind.endswith("[]"):
            return Form("array", pointed(kind)), [given.address], given
        if kind in ("float32", "float64"):
            return Form("number", kind), [float(given)], None
        if kind.startswith("complex"):
            return Form("number", kind), [float(given.real), float(given.imag)], None
        wrapped = int(given) & ((1 << 64) - 1)
        return Form("number", kind), [wrapped - (1 << 64) if wrapped >> 63 else wrapped], None

    def uses(self) -> tuple[frozenset[int], frozenset[int]]:
        """The arguments whose lengths the loop asks for, and those that it writes to; counted behind lo and hi."""
        if self.facts is None:
            program = self.loop.program()
            function = program.trees[program.compiled[-1]]
            names = [argument.arg for argument in function.args.args]
            sized, written = set(), set()
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
                    sized.add(ast.unparse(node.args[0]))
                elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                    written.add(ast.unparse(node.value))
            places = {word: k - 2 for k, word in enumerate(names)}
            self.facts = (
                frozenset(places[word] for word in sized & places.keys()),
                frozenset(places[word] for word in written & places.keys()),
            )
        return self.facts

    def source(self, forms: Sequence[Form]) -> Source:
        """The kernel for arguments of these forms."""
        parameters, types, passed, own = ["n", "lo"], ["int64", "int64"], [], []
        given: dict[str, object] = {"int64": np.int64}
        for k, form in enumerate(forms):
            names, kinds, value = [f"a{k}"], ["int64"], f"a{k}"
            if form.kind == "tuple":
                names = [f"a{k}_{d}" for d in range(form.many)]
                kinds, value = ["int64"] * form.many, f"({', '.join(names)},)"
            elif form.kind in ("table", "array", "scratch"):
                kinds = [f"{pointed(form.type)}*"]
            elif form.type.startswith("complex"):
                names, kinds, value = (
                    [f"a{k}_re", f"a{k}_im"],
                    ["float64"] * 2,
                    f"{form.type}(complex(a{k}_re, a{k}_im))",
                )
            elif form.type != "int64":
                kinds = ["float64" if form.type.startswith("float") else "int64"]
                value = f"{form.type}(a{k})" if form.type != "bool" else f"a{k} != 0"
            if form.kind == "scratch":
                names, kinds = [*names, f"a{k}_each"], [*kinds, "int64"]
                own.append(f"        a{k}_own = advanced(a{k}, i * a{k}_each)")
                value = f"a{k}_own"
            if form.kind == "number" and form.type not in ("int64", "bool"):
                given[form.type] = getattr(np, form.type)
            parameters += names
            types += kinds
            passed.append(value)
        if own:
            given["advanced"] = advanced
        main = self.loop.program().compiled[-1]
        name = f"{main}_on_device"
        lines = [
            f"def {name}({', '.join(parameters)}):",
            "    i = int64(cuda.blockIdx.x) * cuda.blockDim.x + cuda.threadIdx.x",
            "    if i < n:",
            *own,
            f"        {main}(lo + i, lo + i + 1, {', '.join(passed)})",
        ]
        return LoopSource(name, "\n".join(lines) + "\n", given, tuple(types), None, self.loop)


def pointed(kind: str) -> str:
    """The type that an address points to, of an array's or a dtype's name."""
    name = kind.removesuffix("[]")
    return "uint8" if name in ("bool", "bool_") else storage_type(name) if name in DTYPES else name
