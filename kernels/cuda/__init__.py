"""CUDA kernels made of the CPU's scalar functions, a simulator that runs them anywhere, and what a GPU is asked.

No tensors here: kernels take `Operand`s whose array is a `Memory` of a device. numba-cuda is imported when a kernel
must be compiled, and never before. Read compiler.py, intrinsics.py, launch.py; elementwise.py and reduce.py, the
templates; driver.py with null_driver.py, simulated_driver.py and cuda_driver.py; and `simulator/`, which is a book of
its own.
"""

from .choose import driver, restore, use, why_not
from .compiler import Source, available, cubin, ptx
from .driver import NONE_CHOSEN, STREAMS, TAPES, Driver, OutOfDeviceMemory, Start, current_stream, set_current_stream
from .elementwise import OnCUDA as CUDAElementwise
from .launch import Kernel, Launch, Memory
from .null_driver import CompilingDriver, NullDriver
from .reduce import OnCUDA as CUDAReduction

__all__ = [
    "NONE_CHOSEN",
    "STREAMS",
    "TAPES",
    "CUDAElementwise",
    "CUDAReduction",
    "CompilingDriver",
    "Driver",
    "Kernel",
    "Launch",
    "Memory",
    "NullDriver",
    "OutOfDeviceMemory",
    "Source",
    "Start",
    "available",
    "cubin",
    "current_stream",
    "driver",
    "ptx",
    "restore",
    "set_current_stream",
    "use",
    "why_not",
]
