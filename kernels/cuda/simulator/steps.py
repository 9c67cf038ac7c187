"""Instructions as functions on the lanes that run them: they read registers, compute or touch memory, write registers.

`step(instruction, kernel)` is a function `(grid, lanes)`, made once. Arithmetic comes from the tables of
`arithmetic.py`; here is what needs more than the lane's own numbers: memory, votes, shuffles, atomics, carries.
A register holds bits. Which numbers they mean is said by each instruction's type. Read next: `device.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .arithmetic import NUMPY, Operation, Unknown, high_product, operation
from .grid import WARP, Grid, Lanes
from .memory import LOCAL, SHARED, UNSIGNED, Fault
from .parser import WIDTHS, Instruction, Kernel, PTXError

Step = Callable[[Grid, Lanes], None]
Getter = Callable[[Grid, Lanes], Any]
ADDRESS = re.compile(r"\[\s*([\w$%@.]+)\s*(?:\+\s*(-?\d+))?\s*\]")
NUMBER = re.compile(
    r"-?(?:0[xX][0-9a-fA-F]+U?|\d+U?|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?)$"
)
IDLE = ("membar", "fence", "prefetch", "prefetchu", "nanosleep", "pragma", "griddepcontrol")  # change no number here


def step(instruction: Instruction, kernel: Kernel) -> Step:
    """The instruction as a function. PTXError for one that is not known."""
    name, opcode = instruction.name, instruction.opcode
    try:
        if name in IDLE or (name == "bar" and "warp" in opcode):
            return nothing
        if name == "param":
            return hand_over(instruction)
        if name in ("ld", "ldu", "st"):
            return (store if name == "st" else load)(instruction, kernel)
        if name in ("atom", "red"):
            return atomic(instruction, kernel)
        if name == "shfl":
            return shuffle(instruction, kernel)
        if name in ("vote", "activemask"):
            return vote(instruction, kernel)
        if name in ("addc", "subc", "madc") or "cc" in opcode:
            return with_carry(instruction, kernel)
        if name == "mov" and ("{" in instruction.operands[0] or "{" in instruction.operands[1]):
            return repack(instruction, kernel)
        return compute(instruction, kernel, operation(opcode))
    except (Unknown, KeyError) as unknown:
        raise PTXError(f"the simulator does not know {'.'.join(opcode)} ({unknown})", instruction.line) from None


def nothing(grid: Grid, lanes: Lanes) -> None:
    """An instruction that changes nothing here."""


# --- registers --------------------------------------------------------------------------------------------------------


def constant(text: str, kind: np.dtype) -> Any:
    """A number as it stands in an instruction."""
    text = text.rstrip("U")
    head = text[:2].lower()
    if head in ("0f", "0d"):
        data = bytes.fromhex(text[2:])
        if kind.kind != "f":
            return np.frombuffer(data[::-1], UNSIGNED[len(data)]).astype(raw_of(kind)).view(kind)[0]
        exact = np.frombuffer(data[::-1], np.float32 if head == "0f" else np.float64)[0]
        return exact.astype(kind)
    if kind.kind == "f":
        return kind.type(float(text))
    if kind.kind == "b":
        return np.bool_(int(text, 0))
    return np.array(int(text, 0) & ((1 << 8 * kind.itemsize) - 1), raw_of(kind)).view(kind)[()]


def raw_of(kind: np.dtype) -> np.dtype:
    return np.dtype(bool) if kind.kind == "b" else UNSIGNED[kind.itemsize]


def get(text: str, type_: str, kernel: Kernel) -> Getter:
    """Makes the reader of an operand, as numbers of a PTX type."""
    kind = NUMPY[type_]
    if text.startswith("!"):
        inner = get(text[1:], type_, kernel)
        return lambda grid, lanes: ~inner(grid, lanes)
    if NUMBER.match(text):
        value = constant(text, kind)
        return lambda grid, lanes: value
    if text in kernel.widths:
        return register(text, kind)
    if text.startswith("%"):
        return special(text, kind)

    def symbol(grid: Grid, lanes: Lanes) -> Any:
        return kind.type(address_named(grid, text))

    return symbol


def register(name: str, kind: np.dtype) -> Getter:
    if kind.kind == "b":
        return lambda grid, lanes: grid.registers[name][lanes]
    narrow = UNSIGNED[kind.itemsize]

    def read(grid: Grid, lanes: Lanes) -> Any:
        found = grid.registers.get(name)
        if found is None:  # never written: what a compiler leaves so is not used
            found = grid.registers[name] = np.zeros(grid.count, UNSIGNED[grid.kernel.widths[name]])
        found = found[lanes]
        return (found if found.dtype == narrow else found.astype(narrow)).view(kind)

    return read


def special(name: str, kind: np.dtype) -> Getter:
    def read(grid: Grid, lanes: Lanes) -> Any:
        if name.startswith("%lanemask"):
            return lane_mask(grid, lanes, name[-2:]).astype(kind)
        found = grid.special[name]
        return (found[lanes] if found.ndim else found).astype(kind)

    return read


def lane_mask(grid: Grid, lanes: Lanes, which: str) -> Any:
    bit = np.uint64(1) << grid.lane_in_warp[lanes].astype(np.uint64)
    below = bit - np.uint64(1)
    masks = {"eq": bit, "lt": below, "le": below | bit, "gt": ~(below | bit), "ge": ~below}
    return (masks[which] & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def address_named(grid: Grid, name: str) -> int:
    variable = grid.kernel.variables.get(name)
    if variable is not None:
        return (SHARED if variable.space == "shared" else LOCAL) + variable.offset
    return grid.addresses[name]


def put(name: str, kernel: Kernel) -> Callable[[Grid, Lanes, Any], None]:
    """Makes the writer of a register; narrower numbers are widened, by their sign if they have one."""
    if name == "_":
        return lambda grid, lanes, value: None
    width = kernel.widths[name]
    kind = np.dtype(bool) if width == 0 else UNSIGNED[width]

    def write(grid: Grid, lanes: Lanes, value: Any) -> None:
        target = grid.registers.get(name)
        if target is None:
            target = grid.registers[name] = np.zeros(grid.count, kind)
        value = np.asarray(value)
        if value.dtype != kind:
            if value.dtype.kind == "f":
                value = value.view(UNSIGNED[value.dtype.itemsize])
            value = value.astype(kind)
        target[lanes] = value

    return write


def compute(instruction: Instruction, kernel: Kernel, found: Operation) -> Step:
    """An instruction whose result depends on the lane's own numbers alone."""
    target, *sources = instruction.operands
    getters = [get(text, kind, kernel) for text, kind in zip(sources, found.sources, strict=True)]
    function, kind = found.function, NUMPY[found.result]
    first, bar, second = target.partition("|")
    write = put(first, kernel)
    write_not = put(second, kernel) if bar else None

    def run(grid: Grid, lanes: Lanes) -> None:
        result = function(*[read(grid, lanes) for read in getters])
        if result.dtype != kind:
            result = result.astype(kind)
        write(grid, lanes, result)
        if write_not is not None:
            write_not(grid, lanes, ~result)

    return run


def parts_of(text: str) -> list[str]:
    """The registers of a vector operand, `{%f1, %f2}`."""
    return [part.strip() for part in text.strip("{} ").split(",")]


def repack(instruction: Instruction, kernel: Kernel) -> Step:
    """`mov.b64 %rd1, {%r1, %r2}` and the other way round: the first is the lowest."""
    target, source = instruction.operands
    width = WIDTHS[instruction.opcode[-1]]
    if "{" in source:
        pieces = parts_of(source)
        kind = f"b{8 * width // len(pieces)}"
        getters, write = [get(piece, kind, kernel) for piece in pieces], put(target, kernel)

        def join(grid: Grid, lanes: Lanes) -> None:
            total: Any = UNSIGNED[width].type(0)
            for k, read in enumerate(getters):
                total = total | (
                    read(grid, lanes).astype(UNSIGNED[width]) << UNSIGNED[width].type(8 * width // len(pieces) * k)
                )
            write(grid, lanes, total)

        return join
    targets = [put(piece, kernel) for piece in parts_of(target)]
    part, read = UNSIGNED[width // len(targets)], get(source, f"b{8 * width}", kernel)

    def split(grid: Grid, lanes: Lanes) -> None:
        value = read(grid, lanes)
        for k, write_part in enumerate(targets):
            write_part(grid, lanes, (value >> value.dtype.type(8 * part.itemsize * k)).astype(part))

    return split


def with_carry(instruction: Instruction, kernel: Kernel) -> Step:
    """Sums of numbers of many words: `add.cc` leaves a carry that `addc` takes; `mad.lo.cc` adds a product."""
    name, opcode, kind = instruction.name, instruction.opcode, instruction.opcode[-1]
    target, *sources = instruction.operands
    unsigned = f"u{kind[1:]}"
    getters, write = [get(text, unsigned, kernel) for text in sources], put(target, kernel)
    takes, leaves, minus = name.endswith("c"), "cc" in opcode, name.startswith("sub")

    def run(grid: Grid, lanes: Lanes) -> None:
        values = [np.broadcast_to(read(grid, lanes), grid.every[lanes].shape) for read in getters]
        if name.startswith("mad"):
            product = high_product(values[0], values[1]) if "hi" in opcode else values[0] * values[1]
            values = [product, values[2]]
        carried = grid.registers.setdefault("%carry", np.zeros(grid.count, bool))
        a, b = values
        c = carried[lanes].astype(a.dtype) if takes else a.dtype.type(0)
        total = a - b - c if minus else a + b + c
        if leaves:
            over = (a < b) | ((a == b) & (c != 0)) if minus else (total < a) | ((total == a) & (b != 0) & (c != 0))
            if not minus:
                over = over | ((a + b) < a)
            carried[lanes] = over
        write(grid, lanes, total)

    return run


# --- memory -----------------------------------------------------------------------------------------------------------


def address(text: str, kernel: Kernel) -> tuple[Getter, str, int]:
    """Makes the reader of an address operand, `[%rd1+16]`; with its name and offset."""
    found = ADDRESS.match(text)
    if found is None:
        raise KeyError(text)
    name, offset = found[1], int(found[2] or 0)
    wide = kernel.widths.get(name, 8) == 8
    read = get(name, "u64" if wide else "u32", kernel)

    def addresses(grid: Grid, lanes: Lanes) -> Any:
        base = np.broadcast_to(np.asarray(read(grid, lanes)).astype(np.uint64), grid.every[lanes].shape)
        return base + np.uint64(offset & (2**64 - 1)) if offset else base

    return addresses, name, offset


def address_of(grid: Grid, instruction: Instruction, lane: int) -> int | None:
    """The address that an instruction touches for a lane; None for one that touches none."""
    for operand in instruction.operands:
        if operand.startswith("[") and "param" not in instruction.opcode:
            read, _, _ = address(operand, grid.kernel)
            return int(read(grid, np.array([lane]))[0])
    return None


def vector_of(instruction: Instruction) -> int:
    return next((int(word[1:]) for word in instruction.opcode if word in ("v2", "v4", "v8")), 1)


def hand_over(instruction: Instruction) -> Step:
    """Renames what a call takes or returns."""
    target, source = instruction.operands

    def run(grid: Grid, lanes: Lanes) -> None:
        for name in [name for name in grid.registers if name.startswith(f"{source}+")]:
            value = grid.registers[name]
            moved = grid.registers.setdefault(target + name[len(source) :], np.zeros_like(value))
            moved[lanes] = value[lanes]

    return run


def load(instruction: Instruction, kernel: Kernel) -> Step:
    kind, count = instruction.opcode[-1], vector_of(instruction)
    target, source = instruction.operands
    writes = [put(part, kernel) for part in (parts_of(target) if "{" in target else [target])]
    signed, size = NUMPY[kind], WIDTHS[kind]
    read, name, offset = address(source, kernel)
    if "param" in instruction.opcode:

        def load_parameter(grid: Grid, lanes: Lanes) -> None:
            for k, write in enumerate(writes):
                write(
                    grid,
                    lanes,
                    grid.registers[f"{name}+{offset + size * k}"][lanes].astype(UNSIGNED[size]).view(signed),
                )

        return load_parameter

    def run(grid: Grid, lanes: Lanes) -> None:
        for write, value in zip(writes, grid.load(lanes, read(grid, lanes), size, count), strict=True):
            write(grid, lanes, value.view(signed))

    return run


def store(instruction: Instruction, kernel: Kernel) -> Step:
    kind, size = f"b{8 * WIDTHS[instruction.opcode[-1]]}", WIDTHS[instruction.opcode[-1]]
    target, source = instruction.operands
    read, name, offset = address(target, kernel)
    getters = [get(part, kind, kernel) for part in (parts_of(source) if "{" in source else [source])]

    def values(grid: Grid, lanes: Lanes) -> list[Any]:
        shape = grid.every[lanes].shape
        return [np.broadcast_to(getter(grid, lanes), shape) for getter in getters]

    if "param" in instruction.opcode:

        def store_parameter(grid: Grid, lanes: Lanes) -> None:
            for k, value in enumerate(values(grid, lanes)):
                place = grid.registers.setdefault(f"{name}+{offset + size * k}", np.zeros(grid.count, UNSIGNED[size]))
                place[lanes] = value

        return store_parameter

    def run(grid: Grid, lanes: Lanes) -> None:
        grid.store(lanes, read(grid, lanes), size, values(grid, lanes))

    return run


ATOMIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, new: old + new,
    "min": min,
    "max": max,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "exch": lambda old, new: new,
}


def atomic(instruction: Instruction, kernel: Kernel) -> Step:
    """One lane after the other, in order. Atomic accesses do not race with each other."""
    opcode, operands = instruction.opcode, list(instruction.operands)
    kind = NUMPY[opcode[-1]]
    write = put(operands.pop(0), kernel) if instruction.name == "atom" else None
    read, _, _ = address(operands[0], kernel)
    getters = [get(text, opcode[-1], kernel) for text in operands[1:]]
    function = next((ATOMIC[word] for word in opcode if word in ATOMIC), None)
    if function is None and "cas" not in opcode:
        raise KeyError("atomic")

    def run(grid: Grid, lanes: Lanes) -> None:
        addresses = read(grid, lanes)
        given = [np.broadcast_to(getter(grid, lanes), addresses.shape) for getter in getters]
        olds = np.empty(addresses.shape, kind)
        for k in range(len(addresses)):
            one, lane = addresses[k : k + 1], grid.every[lanes][k : k + 1]
            own, owners, is_shared = grid.own_memory(one, lane)
            try:
                if own is None:
                    (bits,) = grid.arena.load(one, kind.itemsize, 1)
                else:
                    places = own.places(one, owners, kind.itemsize, 1, "read")
                    if is_shared:
                        grid.races.change(places, kind.itemsize, grid.warp_of[lane], grid.epochs[owners])
                    (bits,) = own.load(places, kind.itemsize, 1)
            except Fault as fault:
                raise Fault(str(fault), k) from None
            olds[k] = old = bits.view(kind)[0]
            if function is None:
                new = given[1][k] if old == given[0][k] else old
            else:
                new = function(old, given[0][k])
            value = np.array([new], kind).view(UNSIGNED[kind.itemsize])
            if own is None:
                grid.arena.store(one, kind.itemsize, [value])
            else:
                own.store(own.places(one, owners, kind.itemsize, 1, "write"), kind.itemsize, [value])
        if write is not None:
            write(grid, lanes, olds)

    return run


# --- lanes of a warp --------------------------------------------------------------------------------------------------


def shuffle(instruction: Instruction, kernel: Kernel) -> Step:
    """`shfl.sync.down.b32 d|p, a, b, c, members`: a lane takes the number of another one of its warp.

    The other lane must take part: be named in `members`, and be here.
    """
    mode = next(word for word in instruction.opcode if word in ("up", "down", "bfly", "idx"))
    target, *sources = instruction.operands
    value, by, clamp, members = [get(text, "u32", kernel) for text in sources]
    first, _, second = target.partition("|")
    write, write_inside = put(first, kernel), put(second or "_", kernel)

    def run(grid: Grid, lanes: Lanes) -> None:
        mine, here = grid.every[lanes], np.zeros(grid.count, bool)
        here[mine] = True
        shape = mine.shape
        lane = grid.lane_in_warp[mine]
        b, c, mask = (np.broadcast_to(g(grid, lanes), shape).astype(np.int64) for g in (by, clamp, members))
        segment = (c >> 8) & 31
        top = (lane & segment) | (c & 31 & ~segment)
        source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": (b & 31 & ~segment) | (lane & segment)}[
            mode
        ]
        inside = source >= top if mode == "up" else source <= top
        source = np.where(inside, source, lane)
        which = grid.first_of_warp[mine] + source
        whole = grid.first_of_warp[mine] + WARP <= ((mine // grid.threads) + 1) * grid.threads
        present = (which < (mine // grid.threads + 1) * grid.threads) & ((mask >> source) & 1 == 1)
        present[present] = here[which[present]]
        if not present.all():
            k = int((~present).argmax())
            raise Fault(
                f"a shuffle from lane {int(source[k])} of the warp, which is not active here"
                + ("" if whole[k] else " (the warp is not full)"),
                k,
            )
        numbers = np.zeros(grid.count, np.uint32)
        numbers[mine] = value(grid, lanes)
        write(grid, lanes, numbers[which])
        write_inside(grid, lanes, inside)

    return run


def vote(instruction: Instruction, kernel: Kernel) -> Step:
    """`vote.sync.any`, `all`, `uni`, `ballot`, and `activemask`: what holds in a warp."""
    opcode = instruction.opcode
    target, *sources = instruction.operands
    write = put(target, kernel)
    holds = get(sources[0], "pred", kernel) if sources else None

    def run(grid: Grid, lanes: Lanes) -> None:
        mine = grid.every[lanes]
        truth = np.ones(mine.shape, bool) if holds is None else np.broadcast_to(holds(grid, lanes), mine.shape)
        bit = np.uint32(1) << grid.lane_in_warp[mine].astype(np.uint32)
        warps, at = np.unique(grid.first_of_warp[mine], return_inverse=True)
        yes, present = np.zeros(len(warps), np.uint32), np.zeros(len(warps), np.uint32)
        np.bitwise_or.at(yes, at, np.where(truth, bit, np.uint32(0)))
        np.bitwise_or.at(present, at, bit)
        answers: dict[str, Any] = {"any": yes != 0, "all": yes == present, "uni": (yes == 0) | (yes == present)}
        found: Any = next((answers[word] for word in opcode if word in answers), yes)
        write(grid, lanes, np.asarray(found)[at])

    return run
