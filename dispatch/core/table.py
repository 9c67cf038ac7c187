"""Tables: which kernel answers for an operator at a runtime key. The precedence rule, once, as numbered steps.

An operator holds a list of *registrations* per key, alias keys included, the newest last. `resolve` turns them,
with the backend fallbacks that hold for all operators, into the *entry* of one runtime key. Nothing here is
computed before it is asked for, and nothing is asked for while a call runs: operators remember their entries.

Source of the rule: PyTorch's OperatorEntry; steps are numbered as in `explain`'s output. Read next: interpreter.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from ..records import dataclass
from ..specialiser.annotations import frozen
from .key import AUTOCAST_MASK, BACKEND_AT, KEYS, PER_BACKEND, DispatchKey, functionalities, is_built_in, runtime_key

Boxed = Callable[[Any, int, list[Any]], Any]  # (op, keyset, stack) -> result


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One registration: what to call, how it was written, and where.

    `boxed(op, keyset, stack)` is how the interpreter calls it. `function` is what was registered, and
    `convention` how it takes its arguments (see boxing.py), so that a specialiser can call it directly.
    """

    function: Callable[..., Any]
    boxed: Boxed
    convention: str
    place: str  # "file:line" of the registration
    library: str = ""
    name: str = ""  # what to call it where the function's own name says little

    @property
    def label(self) -> str:
        """The kernel's name in traces and explanations."""
        return self.name or getattr(self.function, "__name__", repr(self.function))

    @property
    def is_fallthrough(self) -> bool:
        return self.convention == "fallthrough"


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """The kernel that answers at one runtime key, and the step of the rule that chose it."""

    key: DispatchKey
    kernel: Kernel
    rule: str


Registrations = Mapping[DispatchKey, list[Kernel]]

# Backends that exist once, on one device: they have no Autograd<backend> of their own.
SINGLE_BACKENDS = ("FPGA", "Vulkan", "Metal", "CustomRNGKeyId", "MkldnnCPU")


def members(alias: DispatchKey) -> frozenset[DispatchKey]:
    """The runtime keys that an alias key stands for, users' backends included."""
    return _members(alias.name, tuple(BACKEND_AT.values()))


def backends_of_autograd(key: DispatchKey) -> frozenset[DispatchKey]:
    """The backend keys that lie under the autograd key `key`; none for any other key.

    AutogradOther stands for all backends that have no autograd key of their own.
    """
    return _backends_of_autograd(key, tuple(BACKEND_AT.values()))


def forget_members() -> None:
    """Forgets what is remembered by the names of backends: another one of the same name may follow."""
    _members.cache_clear()
    _backends_of_autograd.cache_clear()


def _each(functionalities: Iterable[str], backends: Iterable[str]) -> set[DispatchKey]:
    return {runtime_key(functionality, backend) for functionality in functionalities for backend in backends}


def _single(*functionalities: str) -> set[DispatchKey]:
    return {runtime_key(functionality, None) for functionality in functionalities}


@cache
def _members(alias: str, backends: tuple[str, ...]) -> frozenset[DispatchKey]:
    def each(*functionalities: str) -> set[DispatchKey]:
        return _each(functionalities, backends)

    autograd = each("AutogradFunctionality") | _single("AutogradOther", "AutogradNestedTensor")
    single = _single(*SINGLE_BACKENDS)
    undefined = {DispatchKey.Undefined}
    match alias:
        case "Autograd":
            return frozenset(autograd)
        case "CompositeImplicitAutograd":
            dense = each("Dense", "Quantized", "Sparse", "SparseCsr", "NestedTensor")
            return frozenset(dense | single | autograd | undefined)
        case "CompositeImplicitAutogradNestedTensor":
            return frozenset(each("NestedTensor") | _single("AutogradNestedTensor"))
        case "CompositeExplicitAutograd":
            return frozenset(each("Dense", "Quantized", "Sparse", "SparseCsr") | single | undefined)
        case "CompositeExplicitAutogradNonFunctional":
            functional = {key for key in each("Dense", "Quantized", "SparseCsr") if key.backend in ("XLA", "Lazy")}
            return frozenset(each("Dense", "Quantized", "SparseCsr") - functional | single | undefined)
        case "FuncTorchBatchedDecomposition":
            return frozenset(_single("FuncTorchBatched"))
    raise ValueError(f"{alias} is no alias key")


@cache
def _backends_of_autograd(key: DispatchKey, backends: tuple[str, ...]) -> frozenset[DispatchKey]:
    match key.functionality:
        case "AutogradFunctionality":
            return frozenset({runtime_key("Dense", key.backend)})
        case "AutogradNestedTensor":
            return frozenset(_each(["NestedTensor"], backends))
        case "AutogradOther":
            return frozenset(_each(["Quantized", "Sparse", "SparseCsr"], backends) | _single(*SINGLE_BACKENDS))
    return frozenset()


def resolve(registered: Registrations, fallbacks: Registrations, key: DispatchKey) -> Entry | None:
    """The entry of one runtime key, or None where nothing answers.

    The first that holds:
      1. a kernel registered for this key;
      2. an alias key that has this key among its members, in this order:
         2.1 CompositeExplicitAutogradNonFunctional
         2.2 CompositeExplicitAutograd
         2.3 CompositeImplicitAutogradNestedTensor, then CompositeImplicitAutograd; the latter only if no backend
             under this autograd key has a kernel of its own and there is no CompositeExplicitAutograd kernel:
             these must not be bypassed. (AutogradOther stands for many backends; there it is an error to have both.)
         2.4 Autograd
         2.5 FuncTorchBatchedDecomposition
      3. the fallback that every operator has at this key. (The autograd and autocast keys of a user's backend have
         those of PrivateUse1, the spare among the built-in backends.)
    """
    # 1.
    if kernel := _newest(registered, key):
        return Entry(key, kernel, "kernel")

    def alias(name: str) -> Kernel | None:
        found = _newest(registered, KEYS[name])
        return found if found and key in members(KEYS[name]) else None

    # 2.1, 2.2
    if kernel := alias("CompositeExplicitAutogradNonFunctional") or alias("CompositeExplicitAutograd"):
        return Entry(key, kernel, "default backend kernel")
    # 2.3
    if kernel := alias("CompositeImplicitAutogradNestedTensor"):
        return Entry(key, kernel, "nested kernel")
    if kernel := alias("CompositeImplicitAutograd"):
        own = any(_newest(registered, backend) for backend in backends_of_autograd(key))
        if own and key.functionality == "AutogradOther":
            return Entry(key, AMBIGUOUS_AUTOGRAD_OTHER, "ambiguous autogradother")
        if not own and not _newest(registered, KEYS["CompositeExplicitAutograd"]):
            return Entry(key, kernel, "math kernel")
    # 2.4, 2.5
    if kernel := alias("Autograd"):
        return Entry(key, kernel, "autograd kernel")
    if kernel := alias("FuncTorchBatchedDecomposition"):
        return Entry(key, kernel, "batched kernel")
    # 3.
    fallback = _newest(fallbacks, key)
    if fallback is None and key.functionality == "AutogradFunctionality" and not is_built_in(key.backend):
        fallback = _newest(fallbacks, KEYS["AutogradPrivateUse1"])
    elif fallback is None and key.bits & AUTOCAST_MASK:
        fallback = _newest(fallbacks, KEYS["AutocastPrivateUse1"])
    return Entry(key, fallback, "backend fallback") if fallback else None


def _newest(registered: Registrations, key: DispatchKey) -> Kernel | None:
    kernels = registered.get(key)
    return kernels[-1] if kernels else None


def _ambiguous(op: Any, keyset: int, stack: list[Any]) -> Any:
    raise RuntimeError(
        f"{op.name()} has kernels registered to both CompositeImplicitAutograd and a backend mapped to "
        "AutogradOther. This makes the backend kernel unreachable; the dispatcher will always prefer the "
        "CompositeImplicitAutograd lowering (see Note [Ambiguity in AutogradOther kernel]). To override it, register a "
        "kernel at an Autograd key.\nIf you only want to run inference instead of training, in C++, add "
        "`c10::InferenceMode mode;` before model.forward(). In Python, use `torch.inference_mode()`"
    )


AMBIGUOUS_AUTOGRAD_OTHER = Kernel(_ambiguous, _ambiguous, "boxed", "dispatch/core/table.py")


def runtime_table_keys() -> list[DispatchKey]:
    """Every runtime key a table has a place for, in PyTorch's order of printing: Undefined, then from the lowest up."""
    keys = [DispatchKey.Undefined]
    for functionality in functionalities():
        if functionality in PER_BACKEND:
            keys += [runtime_key(functionality, BACKEND_AT[bit]) for bit in sorted(BACKEND_AT)]
        else:
            keys.append(runtime_key(functionality, None))
    return keys
