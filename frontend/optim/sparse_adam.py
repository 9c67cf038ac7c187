"""SparseAdam, which this library has not: its gradients are dense."""

from __future__ import annotations

from typing import Any


class SparseAdam:
    """Adam that updates only the rows which a sparse gradient has. NotImplementedError: there are no sparse tensors."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("SparseAdam: sparse gradients are not supported; please consider Adam instead")
