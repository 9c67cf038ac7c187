"""The translator's meaning of what a GPU's kernels alone have: lanes, shared memory, barriers, vectors, shuffles.

A pointer is a flat array whose size nobody knows: its elements have no place from the end. Functions that the CPU has
of the C library are computed by our own bodies (`kernels/maths/vecmath/`), as a GPU has none. Read next: `nvptx.py`.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from functools import cache as once
from typing import Any

import numpy as np

from ..engine import primitives
from ..engine.primitives import WORDS
from ..engine.program import Program
from ..engine.translate.instructions import NOTHING, VARIES, Unknown, Value, constant
from ..engine.translate.promote import BITS, PART, Type, kind, llvm
from ..engine.translate.statements import Statements, Unit
from ..maths import vecmath
from ..maths.vecmath import define
from . import intrinsics
from .of_complex import OF_C, OF_COMPLEX

MOST_TURNS = 16  # of a loop that is written out
SHARED = 3  # LLVM's number of the memory of a block
REGISTERS = {
    f"cuda.{name}.x": register
    for name, register in (("threadIdx", "tid"), ("blockIdx", "ctaid"), ("blockDim", "ntid"), ("gridDim", "nctaid"))
}
SHUFFLES = {
    intrinsics.shuffle_down: ("down", 31),
    intrinsics.shuffle_up: ("up", 0),
    intrinsics.shuffle_across: ("bfly", 31),
}

# A number at the address that %a is, where %b says so: seed and offset of a graph's random numbers. See intrinsics.py.
FROM_MEMORY = """
define i64 @{symbol}(i64 %a, i64 %b) alwaysinline {{
  %there = icmp slt i64 %b, 0
  br i1 %there, label %memory, label %done
memory:
  %start = inttoptr i64 %a to ptr addrspace(1)
  %place = getelementptr i64, ptr addrspace(1) %start, i64 {number}
  %found = load i64, ptr addrspace(1) %place
  br label %done
done:
  %number = phi i64 [{otherwise}, %0], [%found, %memory]
  {more}
  ret i64 %result
}}
"""
MORE = f"%rest = and i64 %b, {primitives.FROM_MEMORY - 1}\n  %result = add i64 %number, %rest"
GIVEN = {
    primitives.seed_from: dict(number=0, otherwise="%a", more="%result = bitcast i64 %number to i64"),
    primitives.offset_from: dict(number=1, otherwise="0", more=MORE),
}

# The rest of a division of floats, exact: what is left of the larger is halved down to the smaller, bit by bit.
REST = """
define {t} @rest.{t}({t} %a, {t} %b) {{
  %x = call {t} @llvm.fabs.{s}({t} %a)
  %y = call {t} @llvm.fabs.{s}({t} %b)
  %finite = fcmp olt {t} %x, {infinity}
  %some = fcmp ogt {t} %y, 0.0
  %usual = and i1 %finite, %some
  br i1 %usual, label %scale, label %none
none:
  ret {t} {nan}
scale:
  %step = phi {t} [%y, %0], [%double, %up]
  %half = fmul {t} %x, 0.5
  %more = fcmp ole {t} %step, %half
  br i1 %more, label %up, label %down
up:
  %double = fmul {t} %step, 2.0
  br label %scale
down:
  %left = phi {t} [%x, %scale], [%next, %down]
  %now = phi {t} [%step, %scale], [%smaller, %down]
  %fits = fcmp oge {t} %left, %now
  %less = fsub {t} %left, %now
  %next = select i1 %fits, {t} %less, {t} %left
  %smaller = fmul {t} %now, 0.5
  %above = fcmp oge {t} %smaller, %y
  %below = fcmp olt {t} %smaller, %now
  %again = and i1 %above, %below
  br i1 %again, label %down, label %done
done:
  %result = call {t} @llvm.copysign.{s}({t} %next, {t} %a)
  ret {t} %result
}}
"""
INFINITY, NAN = "0x7FF0000000000000", "0x7FF8000000000000"
REMAINDER = re.compile(r"frem(?: \w+)* (float|double) (\S+), (\S+)")


class GPUUnit(Unit):
    """The text of one module for a GPU."""

    shared = 0  # how many arrays it has in the memory of a block
    writes_out = False  # whether short loops are written out: memory of a lane is registers where each place is known

    def statements(self, program: Program, flags: frozenset[str]) -> Statements:
        return GPUStatements(self, program, flags)

    def entry(self, program: Program, signature: tuple[str, ...], flags: frozenset[str]) -> str:
        """The text of a kernel, the last function of a program. Pointers come as numbers: they are global memory's.

        flags: LLVM's, of all operations on floats.
        """
        types = tuple(f"{name[:-1]}[]" if name.endswith("*") else name for name in signature)
        found = self.function(program, program.compiled[-1], types, flags)
        taken, lines, passed = [], [], []
        for k, name in enumerate(signature):
            word = "i64" if name.endswith("*") else llvm(name)
            taken.append(f"{word} %p{k}")
            if name.endswith("*"):
                lines += [
                    f"  %g{k} = inttoptr i64 %p{k} to ptr addrspace(1)",
                    f"  %a{k} = addrspacecast ptr addrspace(1) %g{k} to ptr",
                ]
                passed += [f"ptr %a{k}", "i64 0"]
            else:
                passed.append(f"{word} %p{k}")
        lines.append(f"  call {llvm(found.result)} @{found.symbol}({', '.join(passed)})")
        head = f'define ptx_kernel void @kernel({", ".join(taken)}) "no-jump-tables"="true"'  # slow on a GPU
        text = self.text().replace("inline {", "inline convergent {")  # as it may wait for others
        text = REMAINDER.sub(r"call \1 @rest.\1(\1 \2, \1 \3)", text)
        rests = [REST.format(t=t, s=s, infinity=INFINITY, nan=NAN) for t, s in WORDS.values() if f"@rest.{t}(" in text]
        return "\n".join([*rests, text, head + " {", *lines, "  ret void", "}"]) + "\n"


class GPUStatements(Statements):
    """The translation of one function for a GPU."""

    unit: GPUUnit

    # Memory

    def place(self, node: ast.Subscript, array: Value | None = None) -> tuple[Value, str]:
        """The address of an element, and its type. No index counts from the end."""
        array = self.value(node.value) if array is None else array
        if kind(array.type) != "a":
            raise Unknown(f"an element of {array.type}")
        index, element = self.index(self.value(node.slice)), array.type[:-2]
        return self.at(self.parts(array)[0], element, index), element

    def index(self, value: Value) -> Value:
        if kind(value.type) not in "iu":
            raise Unknown(f"an element at {value.type}")
        return self.cast(value, "int64" if kind(value.type) == "i" else "uint64")

    def rest(self, array: Value, which: ast.Slice) -> Value:
        """The part of an array from an element on."""
        if kind(array.type) != "a" or which.lower is None or which.upper is not None or which.step is not None:
            raise Unknown("a slice")
        return self.advanced(array, self.value(which.lower))

    def advanced(self, array: Value, count: Value) -> Value:
        return Value(array.type, None, (self.at(self.parts(array)[0], array.type[:-2], self.index(count)), constant(0)))

    def load(self, place: Value, element: str) -> Value:
        if element not in PART:
            return super().load(place, element)
        parts = [self.at(place, PART[element], constant(k)) for k in range(2)]
        return Value(element, None, tuple(Statements.load(self, one, PART[element]) for one in parts))

    def memory(self, node: ast.Call, space: str) -> Value:
        """An array in the memory of the block, or of the lane."""
        size, element = self.value(node.args[0]).known, self.type_named(node.args[1])
        align = self.value(node.args[2]).known if len(node.args) > 2 else 0
        if not isinstance(size, int):
            raise Unknown("an array whose size is not known")
        word = f"[{size} x {self.stored(element)}]"
        aligned = max(align, bytes_of(element) if element not in PART else bytes_of(element) // 2)
        if space == "local":
            self.unit.writes_out = True
            start = self.line("ptr", f"alloca {word}, align {aligned}")
        else:
            self.unit.shared += 1
            symbol = f"shared_{self.unit.shared}"
            self.require(symbol, f"@{symbol} = internal addrspace({SHARED}) global {word} undef, align {aligned}\n")
            start = Value("ptr", f"addrspacecast (ptr addrspace({SHARED}) @{symbol} to ptr)")
        return Value(f"{element}[]", None, (start, constant(size)))

    def type_named(self, node: ast.expr) -> str:
        """The type that a kernel names by a word or by numpy's class."""
        named: Any = node.value if isinstance(node, ast.Constant) else self.meaning(node)
        return named if isinstance(named, str) else np.dtype(named).name

    # Loops

    def do_For(self, node: ast.For) -> None:
        """A loop over `range`; a short one that chooses among registers is written out."""
        given = [self.value(one).known for one in node.iter.args] if isinstance(node.iter, ast.Call) else []
        known = self.unit.writes_out and all(type(one) is int for one in given)
        known = known and not leaves_early(node) and chooses(node)
        if not known or len(range(*given)) > MOST_TURNS:
            return super().do_For(node)
        for number in range(*given):
            self.assign(node.target, constant(number))
            self.block(node.body)

    # What kernels name as numba-cuda does

    def of_Attribute(self, node: ast.Attribute) -> Value:
        register = REGISTERS.get(ast.unparse(node))
        if register is None:
            return super().of_Attribute(node)
        self.require(register, f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()\n")
        return self.line("int32", f"call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()")

    def of_Constant(self, node: ast.Constant) -> Value:
        """A literal. None is passed on to functions that do not look at it."""
        return constant(0, "int8") if node.value is None else super().of_Constant(node)

    def of_Call(self, node: ast.Call) -> Value:
        if any(isinstance(one, ast.Starred) for one in node.args):
            node = ast.Call(node.func, self.written_out(node.args), node.keywords)
        word = ast.unparse(node.func)
        if word in ("cuda.shared.array", "cuda.local.array"):
            return self.memory(node, word.split(".")[1])
        known = OF_CUDA.get(word)
        return super().of_Call(node) if known is None else known(self, *map(self.value, node.args))

    def written_out(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Arguments of which some stand for all that is in a tuple, each with a name that no program has."""
        given: list[ast.expr] = []
        for node in nodes:
            if not isinstance(node, ast.Starred):
                given.append(node)
                continue
            for k, one in enumerate(self.parts(self.value(node.value))):
                self.names[f"* {id(node)} {k}"] = one
                given.append(ast.Name(f"* {id(node)} {k}", ast.Load()))
        return given

    def looked_up(self, table: Value, index: Value) -> Value:
        """The element of a tuple; of numbers that vary, by comparisons."""
        numbers = self.parts(table)
        if all(number.known is not VARIES for number in numbers) or len({number.type for number in numbers}) != 1:
            return super().looked_up(table, index)
        *others, found = numbers
        for k, one in reversed(list(enumerate(others))):
            found = self.select(self.compare(ast.Eq(), index, constant(k)), one, found)
        return found

    def intrinsic(self, type: Type, name: str, *arguments: str) -> Value:
        """Calls a function of LLVM's for this target; arguments are its types and words."""
        word = llvm(type)
        kinds = ", ".join(one.split(" ")[0] for one in arguments)
        self.require(name, f"declare {word} @{name}({kinds})\n")
        call = f"call {word} @{name}({', '.join(arguments)})"
        if type == "none":
            self.lines.append(f"  {call}")
            return NOTHING
        return self.line(type, call)

    def barrier(self) -> Value:
        return self.intrinsic("none", "llvm.nvvm.barrier.cta.sync.aligned.all", "i32 0")

    def atomic(self, how: str, array: Value, at: Value, value: Value) -> Value:
        """Changes an element in one step; what was there."""
        element = array.type[:-2]
        value, place = self.cast(value, element), self.at(self.parts(array)[0], element, self.index(at))
        word = {"add": "fadd" if kind(element) == "f" else "add", "min": "min" if kind(element) == "i" else "umin"}[how]
        return self.line(element, f"atomicrmw {word} ptr {place.text}, {llvm(element)} {value.text} monotonic")

    def swapped(self, array: Value, at: Value, old: Value, new: Value) -> Value:
        element = array.type[:-2]
        place, word = self.at(self.parts(array)[0], element, self.index(at)), llvm(element)
        old, new = self.cast(old, element), self.cast(new, element)
        found = self.name()
        values = f"{word} {old.text}, {word} {new.text}"
        self.lines.append(f"  {found} = cmpxchg ptr {place.text}, {values} monotonic monotonic")
        return self.line(element, f"extractvalue {{ {word}, i1 }} {found}, 0")

    # Vectors

    def many(self, array: Value, at: Value, count: int) -> tuple[str, str, int]:
        """A vector of elements in memory: its type, its place and alignment, and how many elements share a word."""
        element = array.type[:-2]
        size = bytes_of(element)
        place = self.at(self.parts(array)[0], element, self.index(at))
        each = max(1, min(4 // size, count))
        word = f"i{8 * size * each}" if each > 1 else llvm(PART.get(element, element))
        if element == "bool" and each == 1:
            word = "i8"
        parts = 2 if element in PART else 1
        return f"<{parts * count // each} x {word}>", f"ptr {place.text}, align {count * size}", each

    def loaded(self, count: int, array: Value, at: Value) -> Value:
        """So many elements, in one access."""
        vector, place, each = self.many(array, at, count)
        element, word = array.type[:-2], vector.split(" x ")[1][:-1]
        whole = self.line("ptr", f"load {vector}, {place}")
        size, found = 8 * bytes_of(element), []
        parts = 2 if element in PART else 1
        words = [
            self.line(PART.get(element, element), f"extractelement {vector} {whole.text}, i32 {k}")
            for k in range(parts * count // each)
        ]
        for k in range(count):
            if parts == 2:
                found.append(Value(element, None, (words[2 * k], words[2 * k + 1])))
            elif each == 1:
                found.append(words[k])
            else:
                down = self.line("int32", f"lshr {word} {words[k // each].text}, {k % each * size}")
                cut = self.line(element, f"trunc {word} {down.text} to i{size}")
                found.append(self.line("bool", f"icmp ne i8 {cut.text}, 0") if element == "bool" else cut)
        return Value((element,) * count, None, tuple(found))

    def stored_many(self, count: int, array: Value, at: Value, values: Value) -> Value:
        """Writes so many elements, in one access."""
        vector, place, each = self.many(array, at, count)
        element, word = array.type[:-2], vector.split(" x ")[1][:-1]
        size = 8 * bytes_of(element)
        given = [self.cast(one, element) for one in self.parts(values)]
        if element in PART:
            given = [part for one in given for part in self.parts(one)]
        words = []
        for k in range(0, len(given), each):
            if each == 1:
                words.append(given[k].text)
                continue
            total = "0"
            for j in range(each):
                wide = self.line("int32", f"zext {llvm(element)} {given[k + j].text} to {word}")
                up = self.line("int32", f"shl {word} {wide.text}, {j * size}")
                total = self.line("int32", f"or {word} {total}, {up.text}").text or ""
            words.append(total)
        whole = "undef"
        for k, one in enumerate(words):
            whole = self.line("ptr", f"insertelement {vector} {whole}, {word} {one}, i32 {k}").text or ""
        self.lines.append(f"  store {vector} {whole}, {place}")
        return NOTHING

    # Shuffles

    def shuffled(self, how: tuple[str, int], x: Value, distance: Value) -> Value:
        """The number of another lane; of what has parts, each."""
        if isinstance(x.type, tuple) or x.type in PART:
            return Value(x.type, None, tuple(self.shuffled(how, one, distance) for one in self.parts(x)))
        word, bits = llvm(x.type), BITS[x.type] if x.type != "bool" else 1
        if kind(x.type) == "f":
            text = self.line("int64", f"bitcast {word} {x.text} to i{bits}").text
        else:
            text = x.text
        far = self.cast(distance, "int32")
        if bits == 64:
            high = self.line("int64", f"lshr i64 {text}, 32").text
            halves = [self.line("int32", f"trunc i64 {one} to i32").text for one in (text, high)]
            moved = [self.lane(how, half, far) for half in halves]
            low, high = (self.line("int64", f"zext i32 {one.text} to i64").text for one in moved)
            up = self.line("int64", f"shl i64 {high}, 32").text
            found = self.line("int64", f"or i64 {low}, {up}")
        else:
            wide = text if bits == 32 else self.line("int32", f"zext i{bits} {text} to i32").text
            found = self.lane(how, wide, far)
            if bits < 32:
                found = self.line(x.type, f"trunc i32 {found.text} to i{bits}")
        if kind(x.type) == "f":
            return self.line(x.type, f"bitcast i{bits} {found.text} to {word}")
        return found._replace(type=x.type)

    def lane(self, how: tuple[str, int], text: str | None, distance: Value) -> Value:
        name, clamp = how
        given = "i32 -1", f"i32 {text}", f"i32 {distance.text}", f"i32 {clamp}"
        return self.intrinsic("int32", f"llvm.nvvm.shfl.sync.{name}.i32", *given)

    # Functions

    def apply(self, function: Any, arguments: tuple[Value, ...]) -> Value:
        """Calls what is no function of the program, first what a GPU has of its own."""
        if not hashable(function):
            return super().apply(function, arguments)
        own = OWN.get(function)
        if own is not None:
            return own(self, *arguments)
        if function in GIVEN:
            symbol = f"primitive.{function.__name__}"
            self.require(symbol, FROM_MEMORY.format(symbol=symbol, **GIVEN[function]))
            words = [self.cast(one, "uint64").text for one in arguments]
            return self.line("uint64", f"call i64 @{symbol}(i64 {words[0]}, i64 {words[1]})")
        if any(kind(one.type) == "c" for one in arguments) and function in OF_COMPLEX:
            return self.of_complex(OF_COMPLEX[function], arguments)
        body = bodies().get(function)
        if body is not None and all(kind(one.type) in "biuf" for one in arguments):
            if all(kind(one.type) != "f" for one in arguments):
                arguments = tuple(self.cast(one, "float64") for one in arguments)
            return super().apply(body, arguments)
        return super().apply(function, arguments)

    def of_complex(self, body: Callable, arguments: tuple[Value, ...]) -> Value:
        """Calls a function of complex numbers, which is computed in double precision."""
        single = all(one.type in ("complex64", "float32") for one in arguments)
        program = define.program_of(body, "float64")
        given = tuple(self.cast(one, "complex128") for one in arguments)
        found = self.call(program, program.compiled[-1], given, frozenset())
        return self.cast(found, {"complex128": "complex64"}.get(str(found.type), "float32")) if single else found

    def binary(self, op: ast.operator, a: Value, b: Value) -> Value:
        if isinstance(op, ast.Pow) and not isinstance(b.known, int):
            return self.apply(vecmath.pow, (a, b))
        return super().binary(op, a, b)

    def call_external(self, name: str, type: str, values: tuple[Value, ...]) -> Value:
        body = OF_C.get(name)
        if body is None:
            raise Unknown(f"{name}, which a GPU does not have")
        program = define.program_of(define.single(body) if type == "float32" else body, type)
        return self.call(program, program.compiled[-1], values, frozenset())


def leaves_early(node: ast.For) -> bool:
    """Whether a loop may end in the middle of a turn."""
    return any(isinstance(one, ast.Break | ast.Continue | ast.Return) for one in ast.walk(node))


def chooses(node: ast.For) -> bool:
    """Whether a loop's number says which element of a lane's memory is meant: of other memory, `uint64(...)` says that.

    To write out loops that only walk through other memory would ask for registers for all that their turns read.
    """
    name = ast.unparse(node.target)
    places = [one.slice for one in ast.walk(node) if isinstance(one, ast.Subscript)]
    own = [one for one in places if not (isinstance(one, ast.Call) and ast.unparse(one.func) == "uint64")]
    return any(isinstance(one, ast.Name) and one.id == name for place in own for one in ast.walk(place))


def bytes_of(element: str) -> int:
    """The bytes of an element in memory."""
    return np.dtype(element).itemsize


def hashable(thing: Any) -> bool:
    return getattr(type(thing), "__hash__", None) is not None


@once
def bodies() -> dict[Any, Callable]:
    """The functions of the C library for which there are bodies of ours."""
    named = [(getattr(module, body.__name__, None), body) for module in (math, np) for body in define.BODIES]
    return {function: body for function, body in named if function is not None}


OF_CUDA: dict[str, Callable[..., Value]] = {
    "cuda.syncthreads": GPUStatements.barrier,
    "cuda.syncwarp": lambda body: body.intrinsic("none", "llvm.nvvm.bar.warp.sync", "i32 -1"),
    "cuda.popc": lambda body, x: body.intrinsic("int32", "llvm.ctpop.i32", f"i32 {body.cast(x, 'int32').text}"),
    "cuda.ballot_sync": lambda body, mask, one: body.intrinsic(
        "int32", "llvm.nvvm.vote.ballot.sync", "i32 -1", f"i1 {body.truth(one).text}"
    ),
    "cuda.atomic.add": lambda body, *given: body.atomic("add", *given),
    "cuda.atomic.min": lambda body, *given: body.atomic("min", *given),
}
OWN: dict[Any, Callable[..., Value]] = {
    **{load: (lambda body, x, at, count=count: body.loaded(count, x, at)) for count, load in intrinsics.LOADS.items()},
    **{
        store: (lambda body, x, at, values, count=count: body.stored_many(count, x, at, values))
        for count, store in intrinsics.STORES.items()
    },
    **{
        function: (lambda body, x, distance, how=how: body.shuffled(how, x, distance))
        for function, how in SHUFFLES.items()
    },
    intrinsics.advanced: GPUStatements.advanced,
    intrinsics.swap_if_equal: GPUStatements.swapped,
    intrinsics.add_at: lambda body, x, at, value: (body.atomic("add", x, at, value), NOTHING)[1],
    intrinsics.product: lambda body, x, y: body.line(x.type, f"fmul {llvm(x.type)} {x.text}, {y.text}"),
}
