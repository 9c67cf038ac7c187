"""A GPU made of numpy: runs PTX lane by lane, and says what a kernel does wrong.

    device = Device(memory=1 << 20)
    module = device.load(ptx)
    x = device.allocate(4 * 100)
    device.launch(module, "kernel", grid=(1, 1, 1), block=(128, 1, 1), arguments=[x, 100])

It is the test bed of the CUDA kernels, and a tool to find mistakes with: accesses that are out of bounds or misaligned,
reads of what was never written, missing and divergent barriers, shuffles from lanes that are not there are each a
`KernelFault` (a RuntimeError) that names kernel, line, block, thread, address and allocation. It measures no time.

Read parser.py, memory.py, arithmetic.py, grid.py, steps.py, in this order; device.py puts them together.
"""

from .device import Device, Loaded
from .grid import KernelFault
from .parser import PTXError, parse

__all__ = ["Device", "KernelFault", "Loaded", "PTXError", "parse"]
