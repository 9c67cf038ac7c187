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

Read next: infer_schema.py, kernel_promises.py, tree_arguments.py; dispatch/library.py, on which this is built.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from redispatch.dispatch import (
    BACKEND_OF_DEVICE,
    STATE,
    HasEntryPoint,
    Library,
    MissingKernelError,
    OpOverload,
    RegistrationError,
    Tag,
    caller,
    impl,
    operator_named,
    parse_schema,
    place_of,
    within,
)
from redispatch.dispatch.autograd import register_function_derivative
from redispatch.dispatch.core.registry import Undo
from redispatch.dispatch.layers import ad_inplace_or_view, autocast, backend_select
from redispatch.dispatch.layers.autograd import DERIVATIVES, NO_DERIVATIVE
from redispatch.dispatch.layers.python import TORCH_DISPATCH
from redispatch.dispatch.layers.transforms import BATCHING, ByUser
from redispatch.dispatch.specialiser.annotations import inline

from .custom_forms import functional_schema, inplace_form, on_copies, out_form
from .infer_schema import infer_schema, tree_parameters
from .kernel_promises import check_parameters, owns_its_memory, with_declared_aliases
from .tree_arguments import TreeArguments

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
    A custom operator of the same name is replaced, with all that was registered for it.
    Errors: ValueError for a name without namespace, a function whose annotations give no schema, or one for certain
    devices that has no argument to tell the device by; RegistrationError where the name is taken by an operator that is
    no custom one.

    >>> import redispatch as rd
    >>> from redispatch.library import custom_op
    >>> @custom_op("doc::twice", mutates_args=())
    ... def twice(x: rd.Tensor) -> rd.Tensor:
    ...     return x + x
    >>> twice(rd.ones(2))
    tensor([2., 2.])
    >>> rd.ops.doc.twice.default
    <OpOverload(op='doc.twice', overload='default')>
    """

    def make(function: Function) -> CustomOpDef:
        text = infer_schema(function, mutates_args=mutates_args, tags=tags) if schema is None else schema
        namespace, op_name = parse_name(name)
        if schema is not None:
            check_mutates(schema, mutates_args)
        trees = tree_arguments_of(function) if schema is None else None
        made = CustomOpDef(namespace, op_name, text, function, tags, trees)
        made.register_kernel(device_types)(function)
        return made

    return make if fn is None else make(fn)


def check_mutates(schema: str, mutates_args: str | Iterable[str]) -> None:
    """ValueError where a schema that is given says of other arguments that they are written."""
    written = {argument.name for argument in parse_schema(f"op{schema}").arguments if argument.is_write}
    if not isinstance(mutates_args, str) and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema "
            f"suggests that the op mutates {written or '{}'}, which is different from what was provided to us in "
            "`mutates_args`. Please make these consistent."
        )


def parse_name(name: str) -> tuple[str, str]:
    """("mylib", "bump") of "mylib::bump", with its overload if it has one. ValueError for a name without namespace."""
    namespace, separator, op_name = name.partition("::")
    if not separator or not namespace or not op_name:
        raise ValueError(f"expected a name of the form 'namespace::name', got {name!r}")
    return namespace, op_name


class CustomOpDef(HasEntryPoint):
    """A custom operator: call it; give it kernels, a fake, a derivative, autocast by its `register_` methods."""

    def __init__(
        self,
        namespace: str,
        name: str,
        schema: str,
        function: Function,
        tags: Any = None,
        trees: TreeArguments | None = None,
    ) -> None:
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._init_fn = function
        self._trees = trees  # how pytrees become arguments of the schema, where there are any
        self._fake: Function | None = None
        self._kernels: dict[str | None, Function] = {}
        self._disabled: set[str] = set()
        self.__name__ = name
        self.__doc__ = function.__doc__
        former = _DEFINITIONS.pop(self._qualname, None)
        if former is not None:  # a notebook's cell that is run again, or another definition, which takes its place
            if not same_definition(former._init_fn, function):
                warnings.warn(
                    f"{self._qualname}, defined at {former._opoverload.place}, is defined anew at {place_of(function)}",
                    UserWarning,
                    stacklevel=4,
                )
            former._lib._destroy()
        self._lib: Library = Library(namespace, "FRAGMENT")
        try:
            given = tags if isinstance(tags, list | tuple) else [] if tags is None else [tags]
            self._lib.define(f"{name}{schema}", tags=[*given, Tag.pt2_compliant_tag])  # as PyTorch takes it to be
            self._opoverload: OpOverload = operator_named(self._qualname)
            if trees is None and Tag.out not in given:
                check_tensors_have_places(self._opoverload.schema)
            self._opoverload.place = place_of(function)
            self.__call__ = self._opoverload.__call__ if trees is None else self._called_with_trees
            self._lib.impl(self._opoverload, self._run_fake, "Meta")
        except BaseException:
            self._lib._destroy()
            raise
        self._lib.undo_with(DERIVATIVES.add(self._opoverload, NO_DERIVATIVE(), place_of(function)))  # until it gets one
        self._lib.undo_with(ad_inplace_or_view.register_alias_tracking(self._opoverload))
        self._lib.undo_with(backend_select.register_backend_select(self._opoverload))
        _DEFINITIONS[self._qualname] = self
        self._lib.undo_with(partial(_forget, self._qualname, self._opoverload))

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _called_with_trees(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the operator on a user's arguments, of which some are pytrees."""
        return self._opoverload(**self._trees.spread(args, kwargs))  # type: ignore[union-attr]  # there are some

    # Kernels ------------------------------------------------------------------------------------------------------

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Function | None = None, /) -> Any:
        """Registers the kernel of some device types (None: all); a decorator where `fn` is not given."""

        def register(function: Function) -> Function:
            types = [device_types] if device_types is None or isinstance(device_types, str) else list(device_types)
            for device_type in types:
                if device_type is not None:
                    self._check_device(device_type)
                self._kernels[device_type] = function
                key = "CompositeExplicitAutograd" if device_type is None else BACKEND_OF_DEVICE[device_type]
                kernel = self._checked(function, device_type)
                place = place_of(function)
                self._lib.undo_with(
                    impl(self._opoverload, key, kernel, convention="python", place=place, library=self._namespace)
                )
            return function

        return register if fn is None else register(fn)

    def _check_device(self, device_type: str) -> None:
        """RuntimeError for a device that there is not; ValueError where no argument could tell which one is meant."""
        if device_type not in BACKEND_OF_DEVICE:
            known = ", ".join(BACKEND_OF_DEVICE)
            raise RuntimeError(f"{self}: Expected one of {known} as device type, but got {device_type!r}")
        schema = self._opoverload.schema
        if not schema.tensor_positions and not schema.tensor_list_positions:
            if not any(argument.name == "device" for argument in schema.arguments):
                raise ValueError(
                    f"{self}: Functions without tensor inputs are required to have a `device: torch.device` argument, "
                    "by which the kernel is chosen; or leave device_types out"
                )

    def _checked(self, function: Function, device_type: str | None) -> Function:
        """The kernel, with the promise checked that no result is or aliases an argument."""

        op, trees, origin = self._opoverload, self._trees, self._init_fn
        if trees is not None:
            function, origin = trees.for_schema(function), trees.for_schema(origin)

        @inline
        def kernel(*args: Any, **kwargs: Any) -> Any:
            chosen = origin if self._disabled and device_type in self._disabled else function
            with within(STATE.get().with_grad(False)):  # autograd has had its turn: look at the numbers as you like
                result = chosen(*args, **kwargs)
            if not owns_its_memory(result, (*args, *kwargs.values())):
                result = with_declared_aliases(op, chosen, args, kwargs, result)
            return tuple(result) if len(op.schema.returns) > 1 and isinstance(result, list) else result

        kernel.__name__ = kernel.__qualname__ = getattr(function, "__name__", self._name)
        kernel.__wrapped__ = function  # type: ignore[attr-defined]  # where `inspect` looks for the source
        return kernel

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A region in which the kernel of a device type is disabled, so that the function of the definition runs in its
        place, or enabled."""
        from logging import getLogger  # here, because few programs ask, and it takes as long as 20 of our files

        log = getLogger("torch._library.custom_ops")  # where programs listen
        former = set(self._disabled)
        if device_type not in self._kernels:
            log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this device type.",
                "enable" if enabled else "disable",
                device_type,
            )
        if enabled and device_type not in former:
            log.warning("Attempted to enable kernel for %s but it was already enabled.", device_type)
        elif not enabled and device_type in former:
            log.warning("Attempted to disable kernel for %s but it was already disabled.", device_type)
        (self._disabled.discard if enabled else self._disabled.add)(device_type)
        try:
            yield
        finally:
            self._disabled = former

    # What layers ask ----------------------------------------------------------------------------------------------

    def register_fake(self, fn: Function, /) -> Function:
        """Registers what says the metadata of the result: the same parameters, results made by `empty_like` and the
        like."""
        check_parameters(fn, self._opoverload, self._trees)
        self._fake = fn if self._trees is None else self._trees.for_schema(fn)
        return fn

    def _run_fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._fake is None:
            if self._opoverload.schema.is_mutable and not self._opoverload.schema.returns:
                return None  # there is no result, and what is written looks as before
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
        place = place_of(backward)
        if self._trees is not None:
            backward, setup_context = self._trees.for_backward(backward), self._trees.for_setup(setup_context)
        undo = register_function_derivative(self._opoverload, backward, setup_context, place=place)
        self._lib.undo_with(undo)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Has autocast on this device type cast the operator's floating-point arguments to `cast_inputs`."""
        if device_type not in autocast.KEY_OF_DEVICE:
            raise ValueError(f"Unsupported device type for autocast: {device_type}")
        self._lib.undo_with(autocast.register_policy(self._opoverload, device_type, autocast.to_dtype(cast_inputs)))

    def register_vmap(self, fn: Function | None = None, /) -> Any:
        """Registers what the operator does to a batch: `fn(info, in_dims, *args)` gives (result, dims of the result).

        info: has `batch_size` and `randomness`. in_dims: for each argument the dimension of the batch, None where there
        is none. A decorator without `fn`.
        """

        def register(function: Function) -> Function:
            rule = function if self._trees is None else self._trees.for_vmap(function)
            self._lib.undo_with(register_batching(self._opoverload, rule, place_of(function)))
            return function

        return register if fn is None else register(fn)

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Function | None = None, /) -> Any:
        """Registers what is called for this operator in the place of a mode's or subclass's `__torch_dispatch__`.

        `fn(mode, func, types, args, kwargs)` for a mode, with the class first for a subclass; a decorator without `fn`.
        """

        def register(function: Function) -> Function:
            key = self._opoverload, torch_dispatch_class
            self._lib.undo_with(TORCH_DISPATCH.add(key, function, place_of(function)))
            return function

        return register if fn is None else register(fn)

    # Other forms ------------------------------------------------------------------------------------------------------

    def inplace_form(self) -> OpOverload:
        """Defines `name_`, which writes the result into the first argument; its gradient is that of this operator."""
        return inplace_form(self._opoverload, self._lib)

    def out_form(self) -> OpOverload:
        """Defines the overload `name.out`, which writes the results into `out`, or `out0`, `out1`, ..."""
        return out_form(self._opoverload, self._lib)

    def functional_form(self) -> CustomOpDef:
        """Defines `name_functional`, which writes nothing: it returns what this operator would have written.

        It is a custom operator of its own, and can be given a derivative and a batching rule.
        """
        schema = str(functional_schema(self._opoverload.schema))
        name, parameters = schema[: schema.index("(")].partition("::")[2], schema[schema.index("(") :]
        made = CustomOpDef(self._namespace, name, parameters, on_copies(self._opoverload))
        made._opoverload.place = self._opoverload.place
        made.register_kernel(None)(made._init_fn)
        made.register_fake(made._init_fn)
        self._lib.undo_with(made._lib._destroy)
        return made


def same_definition(a: Function, b: Function) -> bool:
    """Whether two functions are one definition run twice."""
    return (a.__module__, a.__qualname__) == (b.__module__, b.__qualname__) and "<lambda>" not in a.__qualname__


def tree_arguments_of(function: Function) -> TreeArguments | None:
    """The way of the pytrees among a function's parameters; None where there are none."""
    names = tree_parameters(function)
    return TreeArguments(inspect.signature(function), names) if names else None


def check_tensors_have_places(schema: Any, what: str = "") -> None:
    """NotImplementedError where a tensor can only be passed by name."""
    if any(position >= schema.kwarg_only_start for position in schema.tensor_positions + schema.tensor_list_positions):
        advice = "In the original definition of the op, please" if what else "Please"
        raise NotImplementedError(
            f"{what or 'custom_op'} with kwarg-only Tensor args. {advice} make your tensors not kwarg-only. Got: "
            f"{schema if what else str(schema).partition('::')[2]}"
        )


def register_batching(op: OpOverload, rule: Function, place: str) -> Undo:
    """Gives an operator a user's batching rule. NotImplementedError where a tensor can only be passed by name."""
    check_tensors_have_places(op.schema, "register_vmap")
    return BATCHING.override(op, ByUser(rule), place)


def _forget(name: str, op: OpOverload) -> None:
    if name in _DEFINITIONS and _DEFINITIONS[name]._opoverload is op:
        del _DEFINITIONS[name]


def definition_of(op: Any) -> CustomOpDef:
    """The definition behind an operator's name, operator or definition. RegistrationError where it is no custom one."""
    if isinstance(op, CustomOpDef):
        return op
    name = op.qualified_name if isinstance(op, OpOverload) else str(op)
    if name not in _DEFINITIONS:
        raise RegistrationError(f"{name} was not made by custom_op; register for it through Library.impl ({caller()})")
    return _DEFINITIONS[name]
