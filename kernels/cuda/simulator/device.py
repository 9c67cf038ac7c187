"""The simulated GPU: memory, loaded modules, launches; and its multiprocessor, which runs a kernel's instructions, each
for all lanes that have come to it.

The instructions are cut into *stretches* that are entered at the top and left at the bottom, and each lane has the
number of the stretch that it is to run next. The lowest number among the lanes goes first, for all lanes that have it:
lanes that a branch has parted meet again where their ways join, as on a GPU, and a loop ends for all before what
follows it begins.

A lane at a shuffle or a vote waits for those of its warp that can still come to it.

A lane at a barrier waits. When nobody else can go on, each block must have all of its lanes at the same barrier;
a block where some wait and others have left, or wait elsewhere, is the error of a divergent barrier.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from .arithmetic import NUMPY
from .grid import EVERY, Dim, Grid, KernelFault, Lanes
from .memory import LOCAL, SHARED, UNSIGNED, WINDOW, Arena, Fault
from .parser import Instruction, Kernel, Module, parse
from .steps import address_of, step

# --- lanes ------------------------------------------------------------------------------------------------------------


CHUNK = 1 << 16  # lanes that run side by side


class Stretch:
    """Instructions that run one after the other. `steps` are what `steps.py` makes of them."""

    def __init__(
        self, steps: Sequence[tuple[Callable[[Grid, Lanes], None], Instruction]], end: Instruction | None
    ) -> None:
        self.steps, self.end = steps, end
        self.meets = bool(steps) and steps[0][1].name in TOGETHER  # whether the lanes of a warp meet at the top
        self.next = self.target = -1


TOGETHER = ("shfl", "vote")  # what the lanes of a warp do together


def is_barrier(instruction: Instruction) -> bool:
    """Whether a block waits there. `bar.warp.sync` is for the lanes of a warp, which go in step anyway."""
    return instruction.name in ("bar", "barrier") and "warp" not in instruction.opcode


class Program:
    """A kernel made ready to run."""

    def __init__(self, module: Module, kernel: Kernel) -> None:
        self.module, self.kernel = module, kernel
        instructions = kernel.instructions
        cuts = {0, len(instructions)}
        for k, instruction in enumerate(instructions):
            if instruction.name == "bra":
                cuts |= {instruction.target, k + 1}
            elif instruction.name in ("exit", "trap") or is_barrier(instruction):
                cuts.add(k + 1)
            elif instruction.name in TOGETHER:
                cuts.add(k)
        starts = sorted(cut for cut in cuts if cut <= len(instructions))
        number = {start: k for k, start in enumerate(starts)}
        self.stretches = []
        for start, stop in zip(starts, starts[1:], strict=False):
            last = instructions[stop - 1]
            ends = last.name in ("bra", "exit", "trap") or is_barrier(last)
            body = instructions[start : stop - 1] if ends else instructions[start:stop]
            stretch = Stretch([(step(i, kernel), i) for i in body], last if ends else None)
            stretch.next = number[stop]
            if last.name == "bra":
                stretch.target = number[last.target]
            self.stretches.append(stretch)
        self.end = len(self.stretches)

    def run(self, arena: Arena, addresses: dict[str, int], grid: Dim, block: Dim, values: Sequence[np.ndarray]) -> None:
        """Runs a whole grid. `values` are the parameters, arrays of one number. KernelFault for what is wrong."""
        blocks, threads = grid[0] * grid[1] * grid[2], block[0] * block[1] * block[2]
        at_once = max(1, CHUNK // threads)
        for first in range(0, blocks, at_once):
            state = Grid(self.kernel, arena, addresses, grid, block, first, min(at_once, blocks - first))
            for (name, _), value in zip(self.kernel.parameters, values, strict=True):
                state.registers[f"{name}+0"] = np.broadcast_to(value, (state.count,))
            with np.errstate(all="ignore"):
                self._run(state)

    def _run(self, state: Grid) -> None:
        at, waiting = state.at, state.waiting
        while True:
            ready = at if not waiting.any() else np.where(waiting, self.end, at)
            current = int(ready.min())
            if current == self.end:
                if not waiting.any():
                    return
                self._release(state)
                continue
            mine = ready == current
            if self.stretches[current].meets and not mine.all():
                current, mine = self._met(state, ready)
            lanes: Lanes = EVERY if mine.all() else np.flatnonzero(mine)
            self._run_stretch(state, self.stretches[current], lanes)

    def _met(self, state: Grid, ready: np.ndarray) -> tuple[int, np.ndarray]:
        """The lowest stretch that lanes can run now, and these: without those that wait for others of their warp."""
        for current in np.unique(ready[ready != self.end]).tolist():
            mine = ready == current
            if self.stretches[current].meets:
                apart = np.zeros(state.count, bool)
                apart[state.first_of_warp[~mine & (ready != self.end)]] = True
                mine &= ~apart[state.first_of_warp]
            if mine.any():
                return current, mine
        current = int(ready.min())  # they wait for each other: the shuffle says who is missing
        return current, ready == current

    def _run_stretch(self, state: Grid, stretch: Stretch, lanes: Lanes) -> None:
        instruction = stretch.end
        try:
            for run, instruction in stretch.steps:
                if instruction.guard is None:
                    run(state, lanes)
                else:
                    chosen = self._guarded(state, instruction, lanes)
                    if len(chosen):
                        run(state, chosen)
        except Fault as fault:
            assert instruction is not None
            chosen = state.every[lanes] if instruction.guard is None else self._guarded(state, instruction, lanes)
            raise self._told(state, instruction, fault, int(chosen[min(fault.which, len(chosen) - 1)])) from None
        self._leave(state, stretch, lanes)

    def _guarded(self, state: Grid, instruction: Instruction, lanes: Lanes) -> np.ndarray:
        assert instruction.guard is not None
        return state.every[lanes][state.registers[instruction.guard][lanes] != instruction.negated]

    def _leave(self, state: Grid, stretch: Stretch, lanes: Lanes) -> None:
        """Sends the lanes where the stretch's last instruction leads them."""
        end = stretch.end
        if end is None:
            state.at[lanes] = stretch.next
            return
        if is_barrier(end):
            state.waiting[lanes] = True
            state.at[lanes] = stretch.next
            return
        goal = {"bra": stretch.target, "exit": self.end}.get(end.name)
        if goal is None:
            raise self._told(state, end, Fault("the kernel gave up (trap)", 0), int(state.every[lanes][0]))
        if end.guard is None:
            state.at[lanes] = goal
            return
        taken = state.registers[end.guard][lanes] != end.negated
        state.at[lanes] = np.where(taken, goal, stretch.next)

    def _release(self, state: Grid) -> None:
        """Lets the blocks go on whose lanes have all come to one barrier; all lanes that can, have."""
        waiting, at = state.waiting.reshape(-1, state.threads), state.at.reshape(-1, state.threads)
        wrong = waiting.any(1) & ~waiting.all(1)
        here = np.where(waiting, at, -1).max(1)
        wrong |= (waiting & (at != here[:, None])).any(1)
        if wrong.any():
            block = int(wrong.argmax())
            lane = block * state.threads + int(waiting[block].argmax())
            bar = self.stretches[int(here[block]) - 1].end
            assert bar is not None
            elsewhere = int((~(waiting[block] & (at[block] == here[block]))).sum())
            text = f"a divergent barrier: {elsewhere} of the block's {state.threads} lanes do not come to it"
            raise self._told(state, bar, Fault(text, 0), lane)
        state.epochs += waiting.any(1)
        state.waiting[:] = False

    def _told(self, state: Grid, instruction: Instruction, fault: Fault, lane: int) -> KernelFault:
        block, thread = state.place(lane)
        address, message = address_of(state, instruction, lane), str(fault)
        if address is not None:
            near = f"{address:#x}"
            if not SHARED <= address < LOCAL + WINDOW:
                near = state.arena.describe(address)
            message = f"{message}\n  address {near}"
        return KernelFault(message, self.kernel.name, instruction.line, block, thread, address, str(instruction))


# --- the device -------------------------------------------------------------------------------------------------------


MOST_THREADS = 1024  # of a block
MOST_SHARED = 48 << 10  # bytes of a block, without asking for more


class Loaded:
    """A module in the device's memory: its variables have addresses."""

    def __init__(self, text: str, arena: Arena) -> None:
        self.module = parse(text)
        self.addresses: dict[str, int] = {}
        for variable in self.module.variables.values():
            if variable.space in ("global", "const"):
                address = arena.allocate(variable.nbytes, f"the variable {variable.name} of the module")
                content = np.frombuffer(variable.content or bytes(variable.nbytes), np.uint8)
                arena.write(address, content)
                self.addresses[variable.name] = address
        self.programs: dict[str, Program] = {}

    def program(self, name: str) -> Program:
        """A kernel, ready to run. KeyError where there is none of that name."""
        if name not in self.programs:
            self.programs[name] = Program(self.module, self.module.entries[name])
        return self.programs[name]

    def kernel(self, name: str) -> Kernel:
        return self.module.entries[name]


class Device:
    """A GPU of `memory` bytes."""

    def __init__(self, memory: int = 1 << 28) -> None:
        self.arena = Arena(memory)
        self.lock = threading.Lock()  # one launch at a time, whatever threads ask for

    def allocate(self, nbytes: int, name: str = "") -> int:
        """An address of so many bytes of undefined value. MemoryError where there is no room."""
        return self.arena.allocate(nbytes, name)

    def free(self, address: int) -> None:
        self.arena.free(address)

    def read(self, address: int, nbytes: int) -> np.ndarray:
        return self.arena.read(address, nbytes)

    def write(self, address: int, data: np.ndarray) -> None:
        self.arena.write(address, np.ascontiguousarray(data).reshape(-1).view(np.uint8))

    def load(self, text: str) -> Loaded:
        """A module of this PTX text. PTXError where it is not understood."""
        return Loaded(text, self.arena)

    def launch(
        self,
        module: Loaded,
        name: str,
        grid: Dim,
        block: Dim,
        arguments: Sequence[int | float | np.generic],
        strict: bool = True,
    ) -> None:
        """Runs a kernel to its end. One that is not `strict` may read what was never written, as a copy may.

        Errors: KernelFault for what its lanes do wrong; RuntimeError for a launch that no GPU would take.
        """
        program = module.program(name)
        threads = block[0] * block[1] * block[2]
        if not 0 < threads <= MOST_THREADS or min(grid) < 1 or grid[0] >= 2**31 or max(grid[1:]) > 65535:
            raise RuntimeError(f"{name}: a grid of {grid} blocks of {block} threads: invalid configuration argument")
        if program.kernel.shared > MOST_SHARED:
            raise RuntimeError(f"{name} needs {program.kernel.shared} bytes of shared memory; there are {MOST_SHARED}")
        kinds = [NUMPY[kind] for _, kind in program.kernel.parameters]
        if len(arguments) != len(kinds):
            raise RuntimeError(f"{name} takes {len(kinds)} arguments, and {len(arguments)} were given")
        values = [as_bits(value, kind) for value, kind in zip(arguments, kinds, strict=True)]
        with self.lock:
            self.arena.strict = strict
            program.run(self.arena, module.addresses, grid, block, values)


def as_bits(value: int | float | np.generic, kind: np.dtype) -> np.ndarray:
    """An argument as the unsigned integer that has its bits."""
    if kind.kind == "f":
        return np.array([value], kind).view(UNSIGNED[kind.itemsize])
    return np.array([int(value) & ((1 << 8 * kind.itemsize) - 1)], UNSIGNED[kind.itemsize])
