"""Which kernels `scaled_dot_product_attention` may take, for a region of a program: `nn.attention.sdpa_kernel`.

    with rd.nn.attention.sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        ...

Read next: kernels/ops/attention_choice.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from redispatch.kernels.ops.attention_choice import ALLOWED, SDPBackend, allowing

SDPBackend.__module__ = "redispatch.nn.attention"  # where users find it
WARN_FOR_UNFUSED_KERNELS = False


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, Any]]:
    """A region in which attention is computed in one of these ways alone; with `set_priority` asked for in this order.

    Errors: AssertionError for what is no way to compute attention, or a list of some. Where no way is left for a call,
    that is a RuntimeError, with the reasons as warnings.
    """
    if not isinstance(backends, list | SDPBackend):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    token = ALLOWED.set(allowing([backends] if isinstance(backends, SDPBackend) else backends, set_priority))
    try:
        yield {}
    finally:
        ALLOWED.reset(token)
