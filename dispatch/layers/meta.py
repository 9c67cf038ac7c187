"""Meta: tensors without data. An operator answers here by its meta function; where it has none, this says so."""

from __future__ import annotations

from typing import Any

from ..core.key import DispatchKey
from ..core.operator import OpOverload
from ..errors import MissingKernelError
from ..inspection.missing import facts_of_call
from ..specialiser.annotations import leaf
from .layer import layer


@layer("Meta")
def meta(op: OpOverload, keyset: int, stack: list[Any]) -> Any:
    """Raises NotImplementedError: nothing says what shape and dtype the result would have."""
    raise no_fake(op, keyset, stack)


@leaf
def no_fake(op: OpOverload, keyset: int, stack: list[Any]) -> MissingKernelError:
    text = (
        f"{op.name()}: attempted to run this operator with Meta tensors, but there was no fake impl or Meta kernel "
        "registered for this operator."
    )
    fix = f"register one: library.register_fake('{op.qualified_name}')(function)"
    return MissingKernelError(text + facts_of_call(op, keyset, stack, fix), op, DispatchKey.Meta, keyset)
