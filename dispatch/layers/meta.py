"""Meta: tensors without data. An operator answers here by its meta function; where it has none, this says so."""

from __future__ import annotations

from typing import Any

from ..core.key import DispatchKey
from ..core.operator import OpOverload
from ..errors import MissingKernelError
from .layer import layer


@layer("Meta")
def meta(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Raises NotImplementedError: nothing says what shape and dtype the result would have."""
    raise MissingKernelError(
        f"{op.name()}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
        f"registered for this operator. Register one: library.register_fake('{op.qualified_name}')(function)",
        op,
        DispatchKey.Meta,
        keyset,
    )
