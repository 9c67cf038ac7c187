"""`redispatch.library`: define operators and register for them, with PyTorch's names.

The work is done in dispatch/library.py (libraries), kernels/declare/custom_op.py (the decorator) and
frontend/testing/op_check.py (opcheck).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from redispatch.autograd import register_function_derivative
from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    OPERATORS,
    DispatchKey,
    Library,
    OpOverload,
    RegistrationError,
    _scoped_library,
    bind,
    caller,
    fallthrough_kernel,
    key_named,
    operator_named,
    place_of,
)
from redispatch.dispatch.core.registry import load_late
from redispatch.dispatch.layers.autocast import KEY_OF_DEVICE, register_policy, to_dtype
from redispatch.dispatch.layers.python import TORCH_DISPATCH
from redispatch.dispatch.library import IMPLS as _impls  # noqa: F401  # as PyTorch calls it
from redispatch.dispatch.symbolic import FAKE_CONTEXT
from redispatch.dispatch.tensor import DEVICE_TYPES
from redispatch.kernels.declare.custom_op import (
    CustomOpDef,
    check_tensors_have_places,
    custom_op,
    definition_of,
    register_batching,
)
from redispatch.kernels.declare.from_scalar import FromScalar, elementwise
from redispatch.kernels.declare.infer_schema import PyTree, infer_schema
from redispatch.kernels.declare.kernel_promises import check_parameters
from redispatch.kernels.ops.from_fold import reduction

__all__ = [
    "KernelHandle",
    "CustomOpDef",
    "FromScalar",
    "Library",
    "PyTree",
    "custom_op",
    "define",
    "elementwise",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "reduction",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
    "_scoped_library",
]


def _register_fake(self: Library, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any) -> None:
    """Registers what an operator's result looks like without data, in this library."""
    register_fake(_named_in(self, op_name), fn, lib=self)


def _register_torch_dispatch_rule(self: Library, op_name: str, torch_dispatch_class: type, fn: Any) -> None:
    """Registers an operator's own handler for a mode or subclass, in this library."""
    register_torch_dispatch(operator_named(_named_in(self, op_name)), torch_dispatch_class, fn, lib=self)


def _named_in(library: Library, name: Any) -> str:
    return _name(name) if not isinstance(name, str) or "::" in name else f"{library.ns}::{name}"


Library._register_fake = _register_fake  # type: ignore[attr-defined]  # attached here, where what it calls is
Library._register_torch_dispatch_rule = _register_torch_dispatch_rule  # type: ignore[attr-defined]  # the same
_KEPT: list[Library] = []  # of the functions below, whose registrations last as long as the process


def _library(lib: Library | None, namespace: str) -> Library:
    """The user's library, or one that is kept for good."""
    if lib is not None:
        return lib
    kept = Library(namespace, "FRAGMENT")
    _KEPT.append(kept)
    return kept


def define(
    qualname: str | Library, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()
) -> Any:
    """Defines `namespace::name` with a schema such as "(Tensor x, int n=1) -> Tensor".

    With a library in the place of the name, it defines "name(Tensor x) -> Tensor" there, for the function it decorates.
    """
    if isinstance(qualname, Library):
        qualname.define(schema, alias_analysis, tags=tags)
        return partial(_kernel_everywhere, qualname, schema.partition("(")[0].strip())
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(
            f"torch.library.define(qualname, schema): expected qualname to be of form `namespace::name`, got {qualname}"
        )
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'torch.library.define(qualname, schema): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    _library(lib, namespace)._define(f"{name}{schema}", "", caller(), tags)


def _kernel_everywhere(library: Library, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    library._impl(name, function, "", place_of(function))
    return function


def impl(qualname: str | Library, types: str | Sequence[str], func: Any = None, *, lib: Library | None = None) -> Any:
    """Registers a kernel for device types ("cpu") or dispatch keys ("CPU", "default"); a decorator without `func`.

    `impl(library, name, key)` registers in that library. Errors: RuntimeError for a type that is neither.
    """
    if isinstance(qualname, Library):
        library, key = qualname, func or ""
        return partial(_kernel_in, library, types, key)
    for name in [types] if isinstance(types, str) else types:
        if name != "default" and name not in BACKEND_OF_DEVICE and name not in DispatchKey.__members__:
            raise RuntimeError(
                f"Expected one of {', '.join(DEVICE_TYPES)} device type at start of device string: {name}"
            )

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in [types] if isinstance(types, str) else types:
            key = "CompositeExplicitAutograd" if name == "default" else BACKEND_OF_DEVICE.get(name, name)
            _library(lib, qualname.partition("::")[0])._impl(qualname, function, key, place_of(function), waits=False)
        return function

    return register if func is None else register(func)


def _kernel_in(library: Library, name: Any, key: str, function: Callable[..., Any]) -> Callable[..., Any]:
    library._impl(name, function, key, place_of(function), waits=False)
    return function


def register_kernel(
    op: Any, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, *, lib: Any = None
) -> Any:
    """Registers the kernel of an operator for device types (None: every device)."""
    if _is_custom(op):
        return definition_of(op).register_kernel(device_types, func)
    return impl(_name(op), "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Registers what the result looks like without data; a decorator without `func`.

    That of an operator which is not defined yet waits for it.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if _is_custom(op):
            return definition_of(op).register_fake(function)
        if _name(op).removesuffix(".default") in OPERATORS or load_late(_name(op)):
            check_parameters(function, operator_named(_name(op)))
        _library(lib, _name(op).partition("::")[0])._impl(_name(op), function, "Meta", place_of(function))
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Callable[..., Any] | None = None, *, lib: Library | None = None) -> Any:
    """The former name of `register_fake`."""
    return register_fake(qualname, func, lib=lib)


def get_ctx() -> Any:
    """Returns the context that a fake, while it runs on fake tensors, asks for a size that depends on data.

    Errors: RuntimeError on meta tensors, whose sizes are numbers.
    """
    found = FAKE_CONTEXT.get()
    if found is None:
        raise RuntimeError(
            "get_ctx(): this operator may return an output Tensor with data-dependent shape. Meta Tensors don't "
            "support operators with outputs that have data-dependent shapes, because every size is a number. Call it "
            "on fake tensors of a FakeTensorMode(shape_env=ShapeEnv())."
        )
    return found


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Registers a derivative; see `CustomOpDef.register_autograd`."""
    if _is_custom(op):
        definition_of(op).register_autograd(backward, setup_context=setup_context)
        return
    operator = operator_named(_name(op))
    check_tensors_have_places(operator.schema, "register_autograd")
    undo = register_function_derivative(operator, backward, setup_context, place=place_of(backward))
    _library(lib, operator.namespace).undo_with(undo)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Any = None) -> None:
    """Has autocast on this device type cast an operator's floating-point arguments to `cast_inputs`.

    Errors: ValueError for a device type without autocast; the newest registration holds.
    """
    if device_type not in KEY_OF_DEVICE:
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    if _is_custom(op):
        definition_of(op).register_autocast(device_type, cast_inputs)
        return
    operator = operator_named(_name(op))
    undo = register_policy(operator, device_type, to_dtype(cast_inputs))
    _library(lib, operator.namespace).undo_with(undo)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: type, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """Registers an operator's own handler for a mode or subclass; see `CustomOpDef.register_torch_dispatch`.

    RegistrationError where it has one for this very class.
    """
    if _is_custom(op):
        return definition_of(op).register_torch_dispatch(torch_dispatch_class, func)
    operator = operator_named(_name(op))

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        undo = TORCH_DISPATCH.add((operator, torch_dispatch_class), function, place_of(function))
        _library(lib, operator.namespace).undo_with(undo)
        return function

    return register if func is None else register(func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """Registers what an operator does to a batch, `func(info, in_dims, *args)`; see `CustomOpDef.register_vmap`."""
    if _is_custom(op):
        return definition_of(op).register_vmap(func)
    operator = operator_named(_name(op))

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        undo = register_batching(operator, function, place_of(function))
        _library(lib, operator.namespace).undo_with(undo)
        return function

    return register if func is None else register(func)


def opcheck(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    """Tests an operator called with these arguments; see frontend/testing/op_check.py for the tests."""
    from redispatch.testing import op_check  # lazily: it brings tables with it that tests alone need

    return op_check.opcheck(op, args, kwargs, **options)


def triton_op(name: str, fn: Any = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """RuntimeError: there is no Triton here. `custom_op` makes an operator of a function that launches any kernel."""
    raise RuntimeError(
        f"triton_op({name!r}): this library neither runs nor traces Triton kernels. Use custom_op: its function may "
        "launch kernels compiled by whatever you like"
    )


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Any:
    """RuntimeError: see `triton_op`."""
    raise RuntimeError(
        f"wrap_triton({getattr(triton_kernel, '__name__', triton_kernel)}): this library neither runs nor traces "
        "Triton kernels; wrap the function that launches the kernel by custom_op"
    )


class KernelHandle:
    """A kernel found by `get_kernel`: it can be called past the dispatcher."""

    def __init__(self, op: OpOverload, entry: Any) -> None:
        self.op, self.entry = op, entry

    def call_boxed(self, keyset: int, *args: Any, **kwargs: Any) -> Any:
        """Calls the kernel itself, with `keyset` as what it was dispatched with."""
        return self.entry.kernel.boxed(self.op, int(keyset), bind(self.op.schema, args, kwargs))

    def __repr__(self) -> str:
        return f"<kernel of {self.op} at {self.entry.key}: {self.entry.rule}, {self.entry.kernel.place}>"


def get_kernel(op: Any, dispatch_key: Any) -> KernelHandle:
    """The kernel that answers for an operator at a key. RuntimeError where none does."""
    operator = operator_named(_name(op))
    entry = operator.entry_at(key_named(dispatch_key))
    if entry.rule == "missing":
        raise RuntimeError(f"No kernel for {operator.name()} at {dispatch_key}")
    return KernelHandle(operator, entry)


def _name(op: Any) -> str:
    if isinstance(op, CustomOpDef):
        return op._qualname
    return op.qualified_name if isinstance(op, OpOverload) else str(op)


def _is_custom(op: Any) -> bool:
    try:
        definition_of(op)
    except RegistrationError:
        return False
    return True
