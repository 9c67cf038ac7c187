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

Read next: device_memory.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from redispatch.amp.functions import SUPPORTED
from redispatch.dispatch import (
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
from redispatch.dispatch.tensor import KINDS, Allocator, DeviceKind, add_device_type, dtypes

from ..kernels.ops.device_memory import ON_CPU, memory_kernels
from .cpu_fallback import cpu_fallback
from .device_module import DeviceModule, register_device_module
from .methods import generate_methods

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
