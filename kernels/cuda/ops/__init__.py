"""The operators that have kernels of their own on a GPU, a family a file: kernels, launches, registrations.

Kernels are functions for `Written` (templates.py). What an operator launches is said by `@work_of`, or done by a
`@kernel_of`; what other operators make up is a `@composite_of` (runtime/structured.py). Pointwise operators need none
of that, and many a CPU kernel runs on a device as it is (runtime/cpu_kernels.py). Read matmul.py first.
"""

from . import (
    argreduce,
    attention,
    compaction,
    convolution,
    copying,
    decompositions,
    fourier,
    losses,
    matmul,
    matrices,
    norms,
    scan,
    searching,
    segments,
    selection,
    softmax,
    updates,
    windows,
)
