"""The operators that have kernels of their own on a GPU, a family a file: kernels, launches, registrations.

Kernels are functions for `Written` (templates.py). What an operator launches is said by `@work_of`, or done by a
`@kernel_of`; what other operators make up is a `@composite_of` (runtime/definitions.py). Pointwise operators need none
of that, and many a CPU kernel runs on a device as it is (runtime/device_target.py). Read matmul.py first.
"""

from . import (
    attention,
    compaction,
    convolution,
    copying,
    decompositions,
    fourier,
    histograms,
    matmul,
    matrices,
    sampling,
    searchsorted,
    segments,
    selection,
    updates,
    windows,
)
