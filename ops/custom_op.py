"""Custom operators: one decorator makes an operator of a Python function.

    @custom_op("mylib::bump", mutates_args=())
    def bump(x: Tensor) -> Tensor:
        return Tensor(...)

    @bump.register_fake
    def _(x): return torch.empty_like(x)

    bump.register_autograd(backward, setup_context=setup)

The schema follows from the annotations. The function becomes the kernel of every device, or of those named; a fake says
what the result looks like without data; a derivative makes it differentiable. Everything that holds for operators
of the library holds for it: modes, subclasses, autocast, traces.

Read next: infer_schema.py; dispatch/library.py, on which this is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from redispatch.autograd import register_function_derivative
from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    STATE,
    HasEntryPoint,
    Library,
    MissingKernelError,
    OpOverload,
    RegistrationError,
    TensorBase,
    caller,
    operator_named,
    place_of,
    within,
)
from redispatch.dispatch.layers import ad_inplace_or_view, autocast, backend_select
from redispatch.dispatch.layers.python import TORCH_DISPATCH, has_handler
from redispatch.dispatch.marks import inline, leaf
from redispatch.tensor import Tensor

from .infer_schema import infer_schema

Function = Callable[..., Any]

_DEFINITIONS: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Function | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an operator `namespace::name` of a function; a decorator where `fn` is not given.

    mutates_args: names of the arguments that the function writes, or "unknown". device_types: where the function runs;
    everywhere by default. schema: to be used in place of the one that follows from the annotations.
    Errors: ValueError for a name without namespace or a function whose annotations give no schema; RegistrationError
    where the name is taken by something other than an earlier run of this very definition.
    """

    def make(function: Function) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        namespace, op_name = parse_name(name)
        made = CustomOpDef(namespace, op_name, text, function, tags)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


def parse_name(name: str) -> tuple[str, str]:
    """("mylib", "bump") of "mylib::bump". ValueError where there is no namespace."""
    namespace, separator, op_name = name.partition("::")
    if not separator or not namespace or not op_name or "." in op_name:
        raise ValueError(f"custom_op: expected a name of the form 'namespace::name' without overload, got {name!r}")
    return namespace, op_name


class CustomOpDef(HasEntryPoint):
    """A custom operator: call it; give it kernels, a fake, a derivative, autocast by its `register_` methods."""

    def __init__(self, namespace: str, name: str, schema: str, function: Function, tags: Any = None) -> None:
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = function
        self._fake: Function | None = None
        self._kernels: dict[str | None, Function] = {}
        self._disabled: set[str] = set()
        self.__name__ = name
        self.__doc__ = function.__doc__
        former = _DEFINITIONS.get(self._qualname)
        if former is not None and same_definition(former._init_fn, function):
            former._lib._destroy()  # a notebook's cell that is run again
        self._lib: Library = Library(namespace, "FRAGMENT")
        try:
            self._lib.define(f"{name}{schema}", tags=tags or ())
            self._opoverload: OpOverload = operator_named(self._qualname)
            self._opoverload.place = place_of(function)
            self.__call__ = self._opoverload.__call__
            self._lib.impl(self._opoverload, self._run_fake, "Meta")
        except BaseException:
            self._lib._destroy()
            raise
        self._lib.undo_with(ad_inplace_or_view.register_alias_tracking(self._opoverload))
        self._lib.undo_with(backend_select.register_backend_select(self._opoverload))
        _DEFINITIONS[self._qualname] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    # Kernels ------------------------------------------------------------------------------------------------------

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Function | None = None, /) -> Any:
        """Registers the kernel of some device types (None: all); a decorator where `fn` is not given."""

        def register(function: Function) -> Function:
            types = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
            for device_type in types:
                if device_type is not None and device_type not in BACKEND_OF_DEVICE:
                    known = ", ".join(BACKEND_OF_DEVICE)
                    raise ValueError(f"{self}: unknown device type {device_type!r}; there are {known}")
                self._kernels[device_type] = function
                key = "CompositeExplicitAutograd" if device_type is None else BACKEND_OF_DEVICE[device_type]
                self._lib.impl(self._opoverload, self._checked(function, device_type), key, allow_override=True)
            return function

        return register if fn is None else register(fn)

    def _checked(self, function: Function, device_type: str | None) -> Function:
        """The kernel, with the promise checked that no result is or aliases an argument."""

        op = self._opoverload

        @inline
        def kernel(*args: Any, **kwargs: Any) -> Any:
            chosen = self._init_fn if self._disabled and device_type in self._disabled else function
            with within(STATE.get().with_grad(False)):  # autograd has had its turn: look at the numbers as you like
                result = chosen(*args, **kwargs)
            if not owns_its_memory(result, (*args, *kwargs.values())):
                check_no_alias(op, chosen, (*args, *kwargs.values()), result)
            return tuple(result) if len(op.schema.returns) > 1 and isinstance(result, list) else result

        kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", self._name)
        kernel.__wrapped__ = function  # type: ignore[attr-defined]  # where `inspect` looks for the source
        return kernel

    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Any:
        """Disables the kernel of a device type, so that the function of the definition runs in its place, or enables
        it.

        Returns a context manager that puts the former setting back.
        """
        former = set(self._disabled)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        return _Restored(self, former)

    # What layers ask ----------------------------------------------------------------------------------------------

    def register_fake(self, fn: Function, /) -> Function:
        """Registers what says the looks of the result: the same parameters, results made by `empty_like` and the
        like."""
        self._fake = fn
        return fn

    def _run_fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._fake is None:
            raise MissingKernelError(
                f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing "
                f"to work. Please use `{self._init_fn.__name__}.register_fake` to add an fake impl.",
                self._opoverload,
            )
        return self._fake(*args, **kwargs)

    def register_autograd(self, backward: Function, /, *, setup_context: Function | None = None) -> None:
        """Registers a derivative: `backward(ctx, *grads)` gives a gradient (or None) for each argument.

        `setup_context(ctx, inputs, output)` keeps what it needs: `ctx.save_for_backward(x)`, `ctx.n = n`.
        Errors: RuntimeError for an operator that writes an argument.
        """
        schema = self._opoverload.schema
        if schema.is_mutable or schema.is_view:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {schema}. Please "
                "create a functional operator and register an autograd formula for that."
            )
        undo = register_function_derivative(self._opoverload, backward, setup_context, place=place_of(backward))
        self._lib.undo_with(undo)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Has autocast on this device type cast the operator's floating-point arguments to `cast_inputs`."""

        def to_given_dtype(op: OpOverload, stack: list[Any], device: str) -> list[Any]:
            return autocast.cast_all(stack, device, cast_inputs)

        if device_type not in autocast.KEY_OF_DEVICE:
            raise ValueError(f"Unsupported device type for autocast: {device_type}")
        self._lib.undo_with(autocast.register_policy(self._opoverload, device_type, to_given_dtype))

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Function | None = None, /) -> Any:
        """Registers what is called for this operator in the place of a mode's or subclass's `__torch_dispatch__`.

        `fn(mode, func, types, args, kwargs)` for a mode, with the class first for a subclass; a decorator without `fn`.
        """

        def register(function: Function) -> Function:
            key = self._opoverload, torch_dispatch_class
            self._lib.undo_with(TORCH_DISPATCH.add(key, function, place_of(function)))
            return function

        return register if fn is None else register(fn)


class _Restored:
    """Puts the set of disabled kernels back at the end of a `with` block."""

    def __init__(self, definition: CustomOpDef, former: set[str]) -> None:
        self.definition, self.former = definition, former

    def __enter__(self) -> None:
        """The setting is in force already."""

    def __exit__(self, *error: object) -> None:
        self.definition._disabled = self.former


def same_definition(a: Function, b: Function) -> bool:
    """Whether two functions are one definition run twice."""
    return (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__) and "<lambda>" not in a.__qualname__


@inline
def owns_its_memory(result: Any, args: Iterable[Any]) -> bool:
    """Whether a result is certainly a tensor which is none of the arguments and shares no memory with any."""
    return type(result) is Tensor and result._store is None and not any(value is result for value in args)


@leaf
def check_no_alias(op: OpOverload, function: Function, args: Iterable[Any], result: Any) -> None:
    """RuntimeError where a result is an argument, or shares memory with one or with another result."""
    results = [value for value in (result if isinstance(result, tuple | list) else (result,))]
    seen = {id(value._storage) for value in flat(args)}
    for value in flat(results):
        if has_handler(type(value)):
            continue  # a wrapper's storage says nothing about the memory inside
        if id(value._storage) in seen:
            raise RuntimeError(
                f"{op.name()} (with implementation in {function.__module__}): The output of this custom operator (1) "
                "must not also be an input to this custom operator and (2) may not alias any inputs to this custom "
                "operator or other returns. The most common way to trigger this error is if we have y = custom_op(x) "
                "and y and x are the same Tensor. Please instead return a clone of the offending output tensor(s) "
                "(e.g. return x.clone()) or refactor the custom operator to not return y."
            )
        seen.add(id(value._storage))


def flat(values: Iterable[Any]) -> Iterable[Any]:
    """The tensors among values, those inside lists and tuples too."""
    for value in values:
        if isinstance(value, TensorBase):
            yield value
        elif isinstance(value, list | tuple):
            yield from flat(value)


def definition_of(op: Any) -> CustomOpDef:
    """The definition behind an operator's name, operator or definition. RegistrationError where it is no custom one."""
    if isinstance(op, CustomOpDef):
        return op
    name = op.qualified_name if isinstance(op, OpOverload) else str(op)
    if name not in _DEFINITIONS:
        raise RegistrationError(f"{name} was not made by custom_op; register for it through Library.impl ({caller()})")
    return _DEFINITIONS[name]
