"""PTX text as data: a module with its variables, and kernels as lists of instructions.

PTX is the assembly language of a virtual GPU: registers without number, one instruction a line. What compilers write of
it is regular, so a few regular expressions read it:

    .visible .entry add(.param .u64 add_param_0, ...)     a kernel and its parameters
    {
        .reg .f32 %f<4>;                                  registers %f0 to %f3
        .shared .align 4 .b8 parts[128];                  memory of the block, of the lane (.local)
        ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
    $L__BB0_2:                                            a place to jump to
        @!%p1 bra $L__BB0_2;                              done by the lanes where %p1 is false
    }

Functions that a kernel calls are written into it where they are called, with registers and labels of their own; so
what runs later knows of no calls. Recursion does not occur in what numba makes, and is refused.
Read next: `memory.py`.

Source: NVIDIA's "Parallel Thread Execution ISA".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WIDTHS = {
    "pred": 0, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4,
    "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8,
}  # fmt: skip

DEPTH = 16  # functions within functions


class PTXError(RuntimeError):
    """A text that is no PTX, or PTX that the simulator does not know. `line` is the number of the line in the text."""

    def __init__(self, message: str, line: int) -> None:
        self.line = line
        super().__init__(f"{message} (PTX line {line})")


@dataclass(slots=True)
class Instruction:
    """One line: `@guard opcode operands;`. `opcode` is split at its dots; `target` is where a branch leads."""

    opcode: tuple[str, ...]
    operands: list[str]
    line: int
    guard: str | None = None  # the predicate register that decides, if one does
    negated: bool = False
    target: int = -1

    @property
    def name(self) -> str:
        return self.opcode[0]

    def __str__(self) -> str:
        guard = f"@{'!' if self.negated else ''}{self.guard} " if self.guard else ""
        return f"{guard}{'.'.join(self.opcode)} {', '.join(self.operands)}".rstrip()


@dataclass(slots=True)
class Variable:
    """Memory with a name: of the module (`global`, `const`), of a block (`shared`) or of a lane (`local`)."""

    name: str
    space: str
    nbytes: int
    align: int
    content: bytes | None = None
    offset: int = 0  # within the block's or the lane's memory


@dataclass(slots=True)
class Kernel:
    """An entry: what the lanes run. `widths` are the registers' bytes, 0 for predicates."""

    name: str
    parameters: list[tuple[str, str]]  # (name, type)
    text: str
    widths: dict[str, int] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    shared: int = 0  # bytes of a block
    local: int = 0  # bytes of a lane


@dataclass(slots=True)
class Module:
    """The contents of a text."""

    target: str
    version: str
    entries: dict[str, Kernel]
    variables: dict[str, Variable]


@dataclass(slots=True)
class _Function:
    """An entry or a function as it stands in the text: lines with their numbers."""

    name: str
    parameters: list[tuple[str, str]]
    results: list[str]
    body: list[tuple[int, str]]
    is_entry: bool


HEAD = re.compile(r"\.(entry|func)\b")
VARIABLE = re.compile(
    r"\.(global|const|shared|local)\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$%]+)\s*(?:\[(\d*)\])?\s*(?:=\s*(.*))?$",
    re.S,
)
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr\s+[^,]*?)?([\w$]+)(?:\[\d+\])?")
REGISTERS = re.compile(r"\.reg\s+\.(\w+)\s+(.*)$", re.S)
GUARDED = re.compile(r"@(!?)(%[\w$]+)\s+(.*)$", re.S)
CALL = re.compile(r"(?:\((.*?)\)\s*,\s*)?([\w$]+)\s*(?:,\s*\((.*?)\))?$", re.S)
REGISTER = re.compile(r"%[A-Za-z_][\w$]*")


def parse(text: str) -> Module:
    """The module that a PTX text describes. PTXError for what is not understood."""
    version, target, functions, variables = "", "", {}, {}
    for line, statement in _statements(text):
        if statement.startswith(".version"):
            version = statement.split()[1]
        elif statement.startswith(".target"):
            target = statement.split()[1].rstrip(",")
        elif HEAD.search(statement):
            function = _function(line, statement)
            if function is not None:
                functions[function.name] = function
        elif any(f".{space}" in statement.split("=")[0] for space in ("global", "const", "shared")):
            variable = _variable(statement, line)
            if variable is not None:
                variables[variable.name] = variable
    entries = {f.name: _kernel(f, functions, variables, text) for f in functions.values() if f.is_entry}
    return Module(target, version, entries, variables)


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """The statements outside of functions, and functions as a whole, with the numbers of the lines they begin in."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    start, depth, line, begun = 0, 0, 1, 1
    for position, character in enumerate(text):
        if character == "\n":
            line += 1
            ended = text[start:position].strip().startswith((".version", ".target", ".address_size"))
            if depth == 0 and ended:
                yield begun, text[start:position].strip()
                start = position + 1
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0 and HEAD.search(text[start : text.find("{", start)]):
                yield begun, text[start : position + 1].strip()
                start = position + 1
        elif character == ";" and depth == 0:
            yield begun, text[start:position].strip()
            start = position + 1
        if not text[start : position + 1].strip():
            begun = line


def _function(line: int, statement: str) -> _Function | None:
    """A function with its body; None for one that is only declared."""
    head, brace, body = statement.partition("{")
    if not brace:
        return None
    kind = HEAD.search(head)
    assert kind is not None
    after = head[kind.end() :].strip()
    results: list[str] = []
    if after.startswith("("):
        given, _, after = after[1:].partition(")")
        results = [name for _, name in PARAMETER.findall(given)]
    name, _, given = after.partition("(")
    parameters = [(name, kind) for kind, name in PARAMETER.findall(given)]
    lines = list(_body(body[: body.rindex("}")], line + head.count("\n")))
    return _Function(name.strip(), parameters, results, lines, kind[1] == "entry")


def _body(text: str, line: int) -> Iterator[tuple[int, str]]:
    """The statements of a body. Braces within only limit where names are known, and are dropped."""
    current, begun, in_operands = "", line, False
    for character in text:
        if character == "\n":
            line += 1
        in_operands = in_operands or (character == "{" and bool(current.strip()))
        if not in_operands and character in "{}":
            continue
        if character == "}":
            in_operands = False
        if character == ";" or (character == ":" and re.fullmatch(r"\s*[\w$]+", current)):
            yield begun, current.strip() + (":" if character == ":" else "")
            current = ""
            continue
        if not current.strip():
            current, begun = "", line
        current += character


def _variable(statement: str, line: int) -> Variable | None:
    found = VARIABLE.search(statement)
    if found is None:
        raise PTXError(f"a variable that is not understood: {statement[:80]!r}", line)
    space, align, kind, name, count, content = found.groups()
    if kind not in WIDTHS:
        return None  # textures and the like
    width = WIDTHS[kind]
    numbers = [int(n, 0) for n in re.findall(r"-?\b(?:0[xX][0-9a-fA-F]+|\d+)\b", content or "")]
    data = b"".join((n & ((1 << 8 * width) - 1)).to_bytes(width, "little") for n in numbers) if content else None
    nbytes = width * (int(count) if count else len(numbers) if count == "" else 1)
    if data is not None:
        data = data.ljust(nbytes, b"\0")
    return Variable(name, space, nbytes, int(align or width), data)


def _kernel(entry: _Function, functions: dict[str, _Function], variables: dict[str, Variable], text: str) -> Kernel:
    kernel = Kernel(entry.name, entry.parameters, text)
    labels: dict[str, int] = {}
    for variable in variables.values():
        if variable.space == "shared":
            _place(kernel, variable)
    _write_out(kernel, labels, entry, functions, "", 0)
    for instruction in kernel.instructions:
        if instruction.name == "bra":
            goal = instruction.operands[0]
            if goal not in labels:
                raise PTXError(f"a branch to {goal}, which is nowhere", instruction.line)
            instruction.target = labels[goal]
    kernel.instructions.append(Instruction(("exit",), [], entry.body[-1][0] if entry.body else 0))
    return kernel


def _place(kernel: Kernel, variable: Variable) -> None:
    """Gives a variable its place in the memory of the block or the lane."""
    used = kernel.shared if variable.space == "shared" else kernel.local
    variable.offset = -(-used // variable.align) * variable.align
    end = variable.offset + variable.nbytes
    if variable.space == "shared":
        kernel.shared = end
    else:
        kernel.local = end
    kernel.variables[variable.name] = variable


def _write_out(
    kernel: Kernel, labels: dict[str, int], function: _Function, functions: dict[str, _Function], mark: str, depth: int
) -> None:
    """Adds a function's instructions; `mark` makes its names differ from those of all that was added before."""
    if depth > DEPTH:
        raise PTXError(f"{function.name} calls itself", function.body[0][0])
    own: dict[str, str] = {name: name + mark for name, _ in function.parameters}
    own |= {name: name + mark for name in function.results}
    leave = f"leave{mark}"
    for line, statement in function.body:
        if statement.startswith("."):
            _declare(kernel, statement, line, mark, own)
            continue
        if statement.endswith(":"):
            labels[statement[:-1] + mark] = len(kernel.instructions)
            continue
        instruction = _instruction(statement, line, mark, own)
        if instruction is None:
            continue
        if instruction.name == "call":
            _inline(kernel, labels, instruction, functions, depth)
            continue
        if instruction.name == "ret":
            goal = ("bra",) if depth else ("exit",)
            instruction.opcode, instruction.operands = goal, [leave] if depth else []
        kernel.instructions.append(instruction)
    labels[leave] = len(kernel.instructions)


def _declare(kernel: Kernel, statement: str, line: int, mark: str, own: dict[str, str]) -> None:
    """Notes a declaration of a body: registers, memory, parameters of calls."""
    registers = REGISTERS.match(statement)
    if registers:
        width = WIDTHS[registers[1]]
        for word in re.split(r",\s*", registers[2]):
            found = re.match(r"(%?[\w$]+)(?:<(\d+)>)?", word.strip())
            assert found is not None
            names = [f"{found[1]}{k}" for k in range(int(found[2]))] if found[2] else [found[1]]
            for name in names:
                kernel.widths[name + mark] = width
                if not name.startswith("%"):
                    own[name] = name + mark
    elif statement.startswith(".param"):
        for _, name in PARAMETER.findall(statement):
            own[name] = name + mark
    elif statement.startswith((".shared", ".local")):
        variable = _variable(statement, line)
        if variable is not None:
            own[variable.name] = variable.name = variable.name + mark
            _place(kernel, variable)


def _instruction(statement: str, line: int, mark: str, own: dict[str, str]) -> Instruction | None:
    guard, negated = None, False
    guarded = GUARDED.match(statement)
    if guarded:
        negated, guard, statement = bool(guarded[1]), guarded[2] + mark, guarded[3]
    word, _, rest = statement.partition(" ")
    word, _, more = word.partition("\t")
    rest = f"{more} {rest}".strip()
    opcode = tuple(word.split("."))
    if not opcode[0]:
        return None
    if opcode[0] != "call":
        rest = REGISTER.sub(lambda found: _marked(found[0], mark), rest)
        rest = re.sub(r"(?<![%\w$.])[A-Za-z_$][\w$]*", lambda found: own.get(found[0], found[0]), rest)
        if opcode[0] == "bra":
            rest += mark
    instruction = Instruction(opcode, _operands(rest), line, guard, negated)
    if opcode[0] == "call":
        _name_call(instruction, rest, own)
    return instruction


SPECIAL = tuple("%tid %ntid %ctaid %nctaid %laneid %warpid %lanemask %clock %globaltimer %nwarpid".split())


def _marked(register: str, mark: str) -> str:
    return register if register.startswith(SPECIAL) else register + mark


def _operands(text: str) -> list[str]:
    """The operands, split at the commas that stand outside of {} and []."""
    found, depth, current = [], 0, ""
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += character
    return [*found, current.strip()] if current.strip() else found


def _name_call(instruction: Instruction, rest: str, own: dict[str, str]) -> None:
    found = CALL.match(rest)
    if found is None:
        raise PTXError(f"a call that is not understood: {rest!r}", instruction.line)
    results, name, given = found.groups()
    named = [[own.get(word, word) for word in re.findall(r"[\w$%]+", part or "")] for part in (results, given)]
    instruction.operands = [name, ",".join(named[0]), ",".join(named[1])]


def _inline(
    kernel: Kernel, labels: dict[str, int], call: Instruction, functions: dict[str, _Function], depth: int
) -> None:
    """The called function, between moves of what goes in and what comes out."""
    name, results, given = call.operands
    callee = functions.get(name)
    if callee is None:
        raise PTXError(f"{name} is called, but the text does not have it: an unresolved symbol", call.line)
    mark = f"@{len(kernel.instructions)}"
    skip = f"skip{mark}"
    if call.guard:
        kernel.instructions.append(Instruction(("bra",), [skip], call.line, call.guard, not call.negated))
    for (inner, _), outer in zip(callee.parameters, [w for w in given.split(",") if w], strict=True):
        kernel.instructions.append(Instruction(("param",), [inner + mark, outer], call.line))
    _write_out(kernel, labels, callee, functions, mark, depth + 1)
    for outer, inner in zip([w for w in results.split(",") if w], callee.results, strict=True):
        kernel.instructions.append(Instruction(("param",), [outer, inner + mark], call.line))
    labels[skip] = len(kernel.instructions)
