"""The kernel of last resort: it raises the error that says who was asked, and who would have answered."""

from __future__ import annotations

from typing import Any

from ..core.base import Operator
from ..core.key import DispatchKey
from ..core.keyset import describe
from ..core.table import Kernel, runtime_table_keys
from ..errors import MissingKernelError


def _missing(op: Operator, keyset: int, stack: list[Any]) -> Any:
    key = op.entry(keyset).key
    fix = f"register a kernel: library.impl('{op.qualified_name}', '{_register_at(key)}')(function)"
    if key is DispatchKey.Undefined:
        text = (
            "There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no "
            f"fallback function is registered for schema {op.qualified_name}.  This usually means that this function "
            "requires a non-empty list of Tensors, or that you (the operator writer) forgot to register a fallback "
            f"function.  Available functions are {backends_of(op)}."
        )
    else:
        text = (
            f"Could not run '{op.qualified_name}' with arguments from the '{key.name}' backend. This could be because "
            "the operator doesn't exist for this backend, or was omitted during the selective/custom build process (if "
            f"using custom build). '{op.qualified_name}' is only available for these backends: {backends_of(op)}."
        )
    raise MissingKernelError(text + facts_of_call(op, keyset, stack, fix), op, key, keyset)


def facts_of_call(op: Operator, keyset: int, stack: list[Any], fix: str) -> str:
    """The lines of an error that say what was passed, at which keys, who is registered where, and what mends it."""
    registered = ", ".join(f"{known.name} ({kernels[-1].place})" for known, kernels in list(op.registrations.items()))
    return (
        f"\n  you passed   {', '.join(map(describe_value, stack)) or 'nothing'}"
        f"\n  keyset       {describe(keyset)}"
        f"\n  registered   {registered or 'nothing'}"
        f"\n  to fix       {fix}"
    )


def _register_at(key: DispatchKey) -> str:
    """The key to register at where `key` has nothing: Undefined is nobody's backend."""
    return "CompositeExplicitAutograd" if key is DispatchKey.Undefined else key.name


MISSING = Kernel(_missing, _missing, "boxed", "dispatch/inspection/missing.py")


def backends_of(op: Operator) -> str:
    """The keys at which something answers for `op`, as the reference lists them: `[CPU, Meta, Python]`."""
    entries = [op.entry_at(key) for key in runtime_table_keys()]
    names = [e.key.name for e in entries if e.rule != "missing" and not e.kernel.is_fallthrough]
    return f"[{', '.join(names)}]"


def describe_value(value: Any) -> str:
    """A value as error messages and traces show it: tensors by dtype, shape and device, lists by their items."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(describe_value, value))}]"
    summary = getattr(type(value), "_summary", None)
    return summary(value) if summary else repr(value)
