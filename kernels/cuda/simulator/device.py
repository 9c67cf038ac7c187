"""The simulated GPU: memory, loaded modules, launches."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np

from .arithmetic import NUMPY
from .grid import Dim
from .lanes import Program
from .memory import UNSIGNED, Arena
from .parser import Kernel, parse

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
