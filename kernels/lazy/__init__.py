"""Lazy tensors: the device "lazy", on which operators are recorded, and run when a value is asked for.

recorder.py   what an operator gives without running it: nodes, and the memory of what calls like it give
program.py    the nodes that a value needs, as one program, found again by its key
text.py       what was recorded, as text
device.py     the device: the kernel of every operator at the key Lazy, and what moves tensors there and back
"""

from .device import LAZY, LazyWrapper, recorder, start, stop
from .program import Program, Programs, Trace
from .recorder import LazyTensor, Node, Recorder, Result

__all__ = [
    "LAZY",
    "LazyTensor",
    "LazyWrapper",
    "Node",
    "Program",
    "Programs",
    "Recorder",
    "Result",
    "Trace",
    "recorder",
    "start",
    "stop",
]
