"""register(): a device of one's own, in Python, while programs run.

    class Board(backend.Allocator): ...            where its memory comes from

    board = backend.register("board", allocator=Board(), kernels={"add.Tensor": add_on_board}, fallback="cpu")
    x = redispatch.ones(2, device="board:0")

A device type gets a dispatch key for its backend (and Autograd<key>, Autocast<key>, ...), so any number of them live
side by side. What it needs to bring is an allocator, or kernels that know their memory themselves; then

- tensors, copies, printing, files and deep copies follow from the allocator (device_memory.py);
- views and composite operators are the same for every device;
- gradients come from the operators' derivatives, which are written in operators;
- what has no kernel runs on the CPU, if that is wanted (cpu_fallback.py), or is an error that names it.

Read next: kernels/ops/device_memory.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from redispatch.amp.autocast_mode import SUPPORTED
from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    WITHOUT_MODULE,
    Library,
    OpOverload,
    define_backend,
    impl,
    operator_named,
    place_of,
    undefine,
)
from redispatch.dispatch.core.registry import Undo
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, POLICIES, register_policy
from redispatch.dispatch.tensor import (
    KINDS,
    Allocator,
    DeviceKind,
    Tensor,
    UntypedStorage,
    add_device_type,
    as_device,
    current_index,
    dtypes,
    indexed,
    overridable,
    overridable_property,
    set_current_index,
)
from redispatch.kernels.ops.generators import Generator
from redispatch.kernels.ops.storages import TypedStorage
from redispatch.nn import Module
from redispatch.nn.utils.rnn import PackedSequence

from ..kernels.ops.device_memory import ON_CPU, memory_kernels
from .cpu_fallback import cpu_fallback

LIBRARY = sys.modules[__name__.partition(".")[0]]


class DeviceModule(ModuleType):
    """The functions of a device type whose devices all look the same."""

    def __init__(self, kind: DeviceKind, dtypes: tuple[Any, ...]) -> None:
        super().__init__(f"{LIBRARY.__name__}.{kind.name}", f"The device type {kind.name!r}.")
        self._kind, self._dtypes = kind, dtypes
        kind.generators.update({i: Generator(as_device(f"{kind.name}:{i}")) for i in range(kind.count)})
        self.default_generators = tuple(kind.generators[i] for i in range(kind.count))

    def is_available(self) -> bool:
        return self._kind.count > 0

    def is_initialized(self) -> bool:
        return True

    def device_count(self) -> int:
        return self._kind.count

    def current_device(self) -> int:
        """The index of the current device, on which tensors are made where no index is given."""
        return current_index(self._kind.name)

    def set_device(self, device: Any) -> None:
        """Makes another device the current one, in this thread or task. RuntimeError where there is none."""
        set_current_index(self._kind.name, self._index(device))

    def device(self, device: Any) -> Guard:
        """`with module.device(1):` has that device be the current one inside the block."""
        return Guard(self._kind.name, self._index(device))

    def synchronize(self, device: Any = None) -> None:
        """Waits for what runs on a device. Kernels here have ended when they return."""

    def manual_seed(self, seed: int) -> None:
        """Seeds the default generator of the current device."""
        self.default_generators[self.current_device()].manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        """Seeds the default generators of all devices."""
        for generator in self.default_generators:
            generator.manual_seed(seed)

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of a device's default generator."""
        return self.default_generators[self._index(device)].get_state()

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        self.default_generators[self._index(device)].set_state(new_state)

    def get_amp_supported_dtype(self) -> list[Any]:
        """The dtypes to which autocast can cast, the default one first."""
        return list(self._dtypes)

    def _is_in_bad_fork(self) -> bool:
        return False

    def _index(self, device: Any) -> int:
        if isinstance(device, int):
            return device
        index = None if device is None else as_device(device).index
        return self.current_device() if index is None else index


class Guard:
    """A block in which another device is the current one."""

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index = kind, index
        self._former: list[int] = []

    def __enter__(self) -> Guard:
        former = current_index(self.kind)
        set_current_index(self.kind, self.index)
        self._former.append(former)
        return self

    def __exit__(self, *error: object) -> None:
        set_current_index(self.kind, self._former.pop())


def register_device_module(device_type: str, module: Any) -> Callable[[], None]:
    """Makes a module the one of a device type: `redispatch.<type>`; returns what takes it back.

    Errors: RuntimeError where the type is unknown, or has a module.
    """
    kind = as_device(device_type).type
    if kind in vars(LIBRARY):
        raise RuntimeError(f"The runtime module of '{kind}' has already been registered with '{vars(LIBRARY)[kind]}'")
    path = f"{LIBRARY.__name__}.{kind}"
    setattr(LIBRARY, kind, module)
    sys.modules[path] = module
    was_missing = kind in WITHOUT_MODULE
    WITHOUT_MODULE.discard(kind)

    def undo() -> None:
        if was_missing:
            WITHOUT_MODULE.add(kind)
        delattr(LIBRARY, kind)
        sys.modules.pop(path, None)

    return undo


def get_device_module(device: Any = None) -> Any:
    """The module of a device or device type; of the CPU where none is given. RuntimeError where there is none."""
    kind = "cpu" if device is None else as_device(device).type
    if kind == "cpu":
        return LIBRARY.backends.cpu
    module = vars(LIBRARY).get(kind)
    if module is None:
        known = sorted(name for name in BACKEND_OF_DEVICE if name in vars(LIBRARY))
        raise RuntimeError(f"Invalid device_module '{kind}'; there are modules of {', '.join(known) or 'no device'}")
    return module


# --- The methods that carry a device's name: `x.mydev()`, `x.is_mydev`, `module.mydev()`, and those of storages -------


def generate_methods(
    name: str, *, tensor: bool = True, module: bool = True, packed: bool = True, storage: bool = False
) -> Callable[[], None]:
    """Gives classes the methods of the device type `name`; returns what takes them away.

    Errors: RuntimeError where a class has such a method already; then none has got any.
    """
    made = [
        *(tensor_methods(name) if tensor else ()),
        *(module_methods(name) if module else ()),
        *(packed_methods(name) if packed else ()),
        *(storage_methods(name) if storage else ()),
    ]
    for owner, attribute, _ in made:
        if hasattr(owner, attribute):
            raise RuntimeError(f"The custom device module of {owner} has already been registered with {attribute}")
    for owner, attribute, method in made:
        setattr(owner, attribute, method)

    def undo() -> None:
        for owner, attribute, _ in made:
            delattr(owner, attribute)

    return undo


Methods = list[tuple[type, str, Any]]


def wanted(name: str, device: Any) -> Any:
    """The device that a user names by nothing, an index, a device or its name. RuntimeError for one of another type."""
    on = as_device(name if device is None else f"{name}:{device}" if isinstance(device, int) else device)
    if on.type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    return indexed(on)


def tensor_methods(name: str) -> Methods:
    def is_there(self: Tensor) -> bool:
        return self.device.type == name

    def move(self: Tensor, device: Any = None, non_blocking: bool = False, **kwargs: Any) -> Tensor:
        return self.to(wanted(name, device), non_blocking=non_blocking, **kwargs)

    is_there.__name__, move.__name__ = f"is_{name}", name
    move.__doc__ = f"The tensor on a {name} device; itself if it is there."
    return [(Tensor, f"is_{name}", overridable_property(is_there)), (Tensor, name, overridable(move))]


def module_methods(name: str) -> Methods:
    def move(self: Module, device: Any = None) -> Module:
        return self._apply(lambda tensor: getattr(tensor, name)(device))

    move.__name__, move.__doc__ = name, f"Moves all parameters and buffers to a {name} device."
    return [(Module, name, move)]


def packed_methods(name: str) -> Methods:
    def is_there(self: PackedSequence) -> bool:
        return self.data.device.type == name

    def move(self: PackedSequence, *args: Any, **kwargs: Any) -> PackedSequence:
        return self.to(wanted(name, kwargs.pop("device", None)), *args, **kwargs)

    move.__name__ = name
    return [(PackedSequence, f"is_{name}", property(is_there)), (PackedSequence, name, move)]


def storage_methods(name: str) -> Methods:
    def is_there(self: Any) -> bool:
        return self.device.type == name

    def move(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        return move_storage(self, name, device)

    move.__name__ = name
    return [
        (owner, attribute, method)
        for owner in (UntypedStorage, TypedStorage)
        for attribute, method in ((f"is_{name}", property(is_there)), (name, move))
    ]


def move_storage(self: Any, name: str, device: Any) -> Any:
    """A storage, typed or not, on the device of that type that a user names."""
    on = wanted(name, device)
    if self.device == on:
        return self
    return self.to(device=on)


Kernel = Callable[..., Any]


class Backend:
    """A registered device type; a handle on all that belongs to it. Leaving its `with` block takes it back."""

    def __init__(self, kind: DeviceKind, key: Any, module: Any) -> None:
        self.name, self.kind, self.key, self.module = kind.name, kind, key, module
        self.library = Library("aten", "IMPL", key)
        self._undo: list[Undo] = []

    def kernel(self, op: str | OpOverload, function: Kernel | None = None) -> Any:
        """Registers a function with the schema's parameters as the device's kernel; a decorator without `function`."""

        def put(function: Kernel) -> Kernel:
            self.library.impl(qualified(op), function, self.key)
            return function

        return put if function is None else put(function)

    def run_on_cpu(self, *names: str | OpOverload) -> None:
        """Has these operators run on the CPU, or, without names, all that have no kernel on this device."""
        if not names:
            fallbacks = Library("_", "IMPL", self.key)
            fallbacks.fallback(cpu_fallback)
            self._undo.append(fallbacks._destroy)
        for name in names:
            op = qualified(name)
            self._undo.append(free_kernel(op, self.key, on_cpu(op), "python"))

    def remove(self) -> None:
        """Takes the device type back, with its kernels, methods, module and keys. Its tensors are of no use."""
        self.library._destroy()
        while self._undo:
            self._undo.pop()()

    def __enter__(self) -> Backend:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        return f"<backend {self.name!r} at {self.key}>"


def register(
    name: str,
    *,
    allocator: Allocator | None = None,
    kernels: Mapping[str, Kernel] | None = None,
    fallback: str | Iterable[str] | None = None,
    module: Any = None,
    count: int = 1,
    key: str | None = None,
    autocast: Iterable[Any] = (dtypes.bfloat16, dtypes.float16),
) -> Backend:
    """A new device type.

    name:      of the type, as in `device("name:0")`; with it come `Tensor.name()`, `Tensor.is_name`, `Module.name()`.
    allocator: where the memory comes from. Without one `kernels` make tensors: "empty.memory_format", "_copy_from".
    kernels:   operator ("add.Tensor", "mylib::f") -> a function with the schema's parameters.
    fallback:  "cpu": operators without a kernel run on the CPU; or the names of those that do.
    module:    what `redispatch.<name>` is; by default a `DeviceModule`.
    count:     how many devices of the type there are.
    key:       the name of the backend's dispatch key; by default `name` with a capital letter.
    autocast:  the dtypes to which autocast can cast, the default one first.

    Errors: RuntimeError where the name or key is taken, or there is such a module. Then nothing is left behind.
    """
    undo: list[Undo] = []
    try:
        backend_key = define_backend(key or name[:1].upper() + name[1:])
        undo.append(lambda: undefine(backend_key))
        undo.append(add_device_type(name, backend_key.name))
        kind = KINDS[name] = DeviceKind(name, allocator, count)
        undo.append(lambda: KINDS.__delitem__(name))
        module = DeviceModule(kind, tuple(autocast)) if module is None else module
        undo.append(register_device_module(name, module))
        undo.append(generate_methods(name, storage=allocator is not None))
        undo.append(enable_autocast(name, backend_key.name, module))
        made = Backend(kind, backend_key, module)
        made._undo = undo
        if allocator is not None:
            for op, function in memory_kernels(name).items():
                undo.append(free_kernel(qualified(op), backend_key, function, "positional"))
            made.run_on_cpu(*ON_CPU)
        for op, function in (kernels or {}).items():
            made.kernel(op, function)
        if fallback is not None:
            made.run_on_cpu(*(() if fallback == "cpu" else fallback))
    except BaseException:
        while undo:
            undo.pop()()
        raise
    return made


def qualified(op: str | OpOverload) -> OpOverload:
    """The operator of a name; of the namespace aten where the name has none."""
    if isinstance(op, OpOverload):
        return op
    return operator_named(op if "::" in op else f"aten::{op}")


def on_cpu(op: OpOverload) -> Kernel:
    """The CPU fallback as the kernel of one operator."""

    def on_cpu(*args: Any, **kwargs: Any) -> Any:
        return cpu_fallback(op, *args, **kwargs)

    return on_cpu


def free_kernel(op: OpOverload, key: Any, function: Kernel, convention: str) -> Undo:
    """A kernel that comes with the device; users' own for the same operator stand above it, without a warning."""
    return impl(op, key, function, convention=convention, place=place_of(function))


def enable_autocast(name: str, backend: str, module: Any) -> Undo:
    """Lets autocast know a device type, if its module says to which dtypes it can cast.

    What is cast is what would be on a GPU: such lists suit a device that computes in few bits.
    """
    listed = getattr(module, "get_amp_supported_dtype", None)
    if listed is None:
        return lambda: None
    KEY_OF_DEVICE[name], SUPPORTED[name] = f"Autocast{backend}", tuple(listed())
    listed_ops = [op for op, on in POLICIES if on == "cuda"]
    policies = [register_policy(op, name, policy) for op in listed_ops if (policy := POLICIES.get((op, "cuda")))]

    def undo() -> None:
        for undo_policy in policies:
            undo_policy()
        del KEY_OF_DEVICE[name], SUPPORTED[name]

    return undo
