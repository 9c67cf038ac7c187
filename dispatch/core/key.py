"""Dispatch keys: the names for backends and functionalities, and their one total order.

A *functionality* is a layer that an operator call may pass through (Autograd, Autocast, Python, Dense, ...);
a *backend* is a kind of device (CPU, CUDA, ..., Meta). Six functionalities exist once per backend: the *runtime
key* AutogradCPU is the functionality AutogradFunctionality met by the backend CPU. An *alias key* is one name for
several runtime keys; it never occurs in a keyset and is resolved when a table is built.

Every backend and every functionality owns one bit of a keyset; a higher bit goes first. The order is the
reference's (PyTorch's DispatchKey.h), written out below once.

Note [Gaps between keys]
Bits are given out with gaps, so that users can put keys of their own between the built-in ones at run time
while tensors that exist already keep a valid keyset: Python's ints do not end at 64 bits. Four bits per
functionality keep a keyset at 232 bits, which costs as good as nothing; sixteen would double the cost of a
table look-up (docs/decisions/0002). A new key takes the middle of its gap, so that at least two fit into each,
whichever of them comes first. Autocast is the one layer of which each backend has a key and that is off by default:
above AutocastPrivateUse1 lie as many bits more as there may be users' backends, and nothing else gets them.

Read next: keyset.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..errors import UnknownKeyError
from ..records import dataclass
from ..specialiser.annotations import frozen

BACKEND_BITS = 32
GAP = 4
KEYSET_BITS = 256  # the widest keyset: no bit is given out above. A wider mask would slow down every `& ~excluded`.

# from the lowest bit; users' backends follow, and Meta keeps the highest of the backend bits
BACKENDS = """
    CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3
""".split()

# from the lowest, which runs last, to the highest, which runs first
FUNCTIONALITIES = """
    Dense FPGA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr NestedTensor BackendSelect Fake
    Python FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative ZeroTensor ADInplaceOrView
    AutogradOther AutogradFunctionality AutogradNestedTensor Tracer AutocastCPU AutocastMTIA AutocastMAIA
    AutocastXPU AutocastIPU AutocastHPU AutocastXLA AutocastMPS AutocastCUDA AutocastPrivateUse1
    FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode FuncTorchGradWrapper DeferredInit
    PythonTLSSnapshot FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode
    PreDispatch PythonDispatcher
""".split()

OWN_BACKENDS = BACKEND_BITS - len(BACKENDS) - 1  # how many backends users may have
_FIRST_WITHOUT_AUTOCAST = FUNCTIONALITIES.index("AutocastPrivateUse1") + 1
AUTOCAST_BITS = BACKEND_BITS + GAP * _FIRST_WITHOUT_AUTOCAST  # where those of users' backends begin


def _position(index: int) -> int:
    """The bit of a built-in functionality."""
    return BACKEND_BITS + GAP * index + (OWN_BACKENDS if index >= _FIRST_WITHOUT_AUTOCAST else 0)


# every bit of an Autocast key, those included that users' backends may have one day
AUTOCAST_MASK = sum(
    1 << _position(index) for index, name in enumerate(FUNCTIONALITIES) if name.startswith("Autocast")
) | (((1 << OWN_BACKENDS) - 1) << AUTOCAST_BITS)

PER_BACKEND = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}  # functionality -> prefix of its runtime keys

ALIASES = {
    "Autograd": "every Autograd<backend>, AutogradOther, AutogradNestedTensor",
    "CompositeImplicitAutograd": "every backend, every Autograd key: written in other operators, derivative for free",
    "CompositeImplicitAutogradNestedTensor": "the NestedTensor backends and AutogradNestedTensor",
    "CompositeExplicitAutograd": "every backend, no Autograd key: one kernel for all devices",
    "CompositeExplicitAutogradNonFunctional": "as before, less Sparse, XLA and Lazy: one kernel that writes or aliases",
    "FuncTorchBatchedDecomposition": "FuncTorchBatched",
}

KEYS: dict[str, DispatchKey] = {}  # by name: runtime keys, alias keys, Undefined
BACKEND_AT: dict[int, str] = {}  # bit -> backend
FUNCTIONALITY_AT: dict[int, str] = {}  # bit -> functionality
RUNTIME: dict[tuple[str, str | None], DispatchKey] = {}

# Called with a key after it has been taken away. Tables above this file forget it then.
ON_UNDEFINE: list[Callable[[DispatchKey], None]] = []


class _KeysByName(type):
    """Makes `DispatchKey.AutogradCPU` find the key of that name, users' keys included."""

    def __getattr__(cls, name: str) -> DispatchKey:
        try:
            return KEYS[name]
        except KeyError:
            raise AttributeError(f"there is no dispatch key {name!r}") from None

    @property
    def __members__(cls) -> dict[str, DispatchKey]:
        return dict(KEYS)

    def __iter__(cls) -> Iterator[DispatchKey]:
        return iter(list(KEYS.values()))


@frozen
@dataclass(frozen=True, slots=True, eq=False)
class DispatchKey(metaclass=_KeysByName):
    """One key. `bits` is what it sets in a keyset: its functionality's bit, with its backend's where it has one."""

    name: str
    bits: int = 0
    functionality: str | None = None
    backend: str | None = None

    @property
    def is_alias(self) -> bool:
        return self.name in ALIASES

    @property
    def is_autograd(self) -> bool:
        return self.functionality in ("AutogradFunctionality", "AutogradOther", "AutogradNestedTensor")

    def __repr__(self) -> str:
        return f"DispatchKey.{self.name}"

    __str__ = __repr__

    def __reduce__(self):
        return key_named, (self.name,)


def key_named(name: str | DispatchKey) -> DispatchKey:
    """The key of that name. UnknownKeyError, with the names that come close, where there is none."""
    if isinstance(name, DispatchKey):
        return name
    if name in KEYS:
        return KEYS[name]
    close = sorted((known for known in KEYS if str(name).lower() in known.lower()), key=len)
    raise UnknownKeyError(
        f"could not parse dispatch key: {name}" + (f" (did you mean {', '.join(close[:5])}?)" if close else "")
    )


def functionality_at(bit: int) -> str | None:
    return FUNCTIONALITY_AT.get(bit)


def backend_at(bit: int) -> str | None:
    return BACKEND_AT.get(bit)


def runtime_key(functionality: str, backend: str | None) -> DispatchKey:
    """The runtime key of a functionality, for `backend` where the functionality exists once per backend."""
    if functionality in PER_BACKEND:
        return KEYS["Undefined"] if backend is None else RUNTIME[functionality, backend]
    return RUNTIME[functionality, None]


def backends() -> list[str]:
    """Every backend, users' included, from the lowest bit to the highest."""
    return [BACKEND_AT[bit] for bit in sorted(BACKEND_AT)]


def functionalities() -> list[str]:
    """Every functionality, users' included, from the lowest bit to the highest."""
    return [FUNCTIONALITY_AT[bit] for bit in sorted(FUNCTIONALITY_AT)]


def is_built_in(backend: str | None) -> bool:
    """Whether a backend is one of the reference's, not a user's."""
    return backend in BACKENDS or backend == "Meta"


def add_single(name: str, bit: int) -> DispatchKey:
    """The runtime key of a functionality that exists once."""
    key = KEYS[name] = RUNTIME[name, None] = DispatchKey(name, 1 << bit, name)
    return key


def add_backend(name: str, bit: int) -> None:
    BACKEND_AT[bit] = name
    for position, functionality in list(FUNCTIONALITY_AT.items()):
        if functionality in PER_BACKEND:
            key = DispatchKey(PER_BACKEND[functionality] + name, 1 << position | 1 << bit, functionality, name)
            KEYS[key.name] = RUNTIME[functionality, name] = key


KEYS["Undefined"] = DispatchKey("Undefined")
for _index, _name in enumerate(FUNCTIONALITIES):
    FUNCTIONALITY_AT[_position(_index)] = _name
    if _name not in PER_BACKEND:  # else its runtime keys come with the backends
        add_single(_name, _position(_index))
for _index, _name in enumerate(BACKENDS):
    add_backend(_name, _index)
add_backend("Meta", BACKEND_BITS - 1)
for _name in ALIASES:
    KEYS[_name] = DispatchKey(_name)
