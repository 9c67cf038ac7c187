"""PyTorch's first way to define operators, over libraries: `custom_op(name)`, then `.impl`, `.impl_abstract` and so on.

A `CustomOp` is an operator of a library of its own and the functions that were registered for it, one of each kind. Its
derivative comes in two functions: one says what is saved for the backward, the other gives a dict of gradients by name.
New code has `library.custom_op`. Read next: ../_custom_ops.py.
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from redispatch.autograd import register_function_derivative
from redispatch.dispatch import (
    FunctionSchema,
    Library,
    OpOverload,
    key_named,
    operator_named,
    ops,
    parse_schema,
    place_of,
)
from redispatch.dispatch.layers.autograd import DERIVATIVES
from redispatch.dispatch.pytree import tree_flatten, tree_leaves, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.declare.infer_schema import infer_schema
from redispatch.library import get_ctx, register_fake

__all__ = ["CustomOp", "custom_op", "get_ctx"]

Function = Callable[..., Any]
SUPPORTED_DEVICE_TYPE_TO_KEY = {"cpu": "CPU", "cuda": "CUDA"}
RESERVED_NS = {"prim", "prims", "aten", "at", "torch", "pytorch"}
DIFFERENTIABLE = ("int", "SymInt", "bool", "float", "Tensor", "List[Tensor]")

global_registry: dict[str, CustomOp] = {}


class CustomOp:
    """An operator, with what was registered for it by this interface."""

    def __init__(
        self, lib: Any, cpp_ns: Any, schema: Any, operator_name: Any, ophandle: Any, *, _private_access: bool = False
    ) -> None:
        if not _private_access:
            raise RuntimeError(
                "The CustomOp constructor is private and we do not guarantee BC for it. Please use custom_op(...) to "
                "create a CustomOp object"
            )
        self._lib, self._schema, self._opname, self._ophandle = lib, schema, operator_name, ophandle
        self._qualname = f"{cpp_ns}::{operator_name}"
        self._impls: dict[str, tuple[Function, str]] = {}  # kind -> the function and where it stands
        self._output_differentiability: list[bool] | None = None
        global_registry[self._qualname] = self

    def __repr__(self) -> str:
        return f'<CustomOp(op="{self._qualname}")>'

    def _has_impl(self, kind: str) -> bool:
        return kind in self._impls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ophandle(*args, **kwargs)

    def _destroy(self) -> None:
        self._lib._destroy()
        del global_registry[self._qualname]

    def _register(self, kind: str, function: Function, key: str = "") -> None:
        """Notes the one function of a kind and, with a key, makes it the kernel there."""
        if kind in self._impls:
            raise RuntimeError(
                f"Attempting to register a {kind} impl for operator {self._qualname} that already has a {kind} impl "
                f"registered from Python at {self._impls[kind][1]}. This is not supported."
            )
        if key:
            self._lib.impl(self._opname, function, key)
        self._impls[kind] = function, place_of(function)

    def impl(self, device_types: str | Iterable[str], _stacklevel: int = 2) -> Callable[[Function], Function]:
        """Registers the kernel of device types. RuntimeError where one answers there already."""
        named = [device_types] if isinstance(device_types, str) else list(device_types)
        for name in named:
            if name not in SUPPORTED_DEVICE_TYPE_TO_KEY:
                raise ValueError(
                    f"CustomOp.impl(device_types=[{name}, ...]): we only support device_type in "
                    f"{SUPPORTED_DEVICE_TYPE_TO_KEY.keys()}."
                )

        def register(function: Function) -> Function:
            for name in dict.fromkeys(named):
                key = SUPPORTED_DEVICE_TYPE_TO_KEY[name]
                if name not in self._impls and self._ophandle.entry_at(key_named(key)).rule != "missing":
                    raise RuntimeError(
                        f"impl(..., device_types={name}): the operator {self._qualname} already has an implementation "
                        "for this device type via a pre-existing torch.library or TORCH_LIBRARY registration."
                    )
                self._register(name, function, key)
            return function

        return register

    def impl_factory(self) -> Callable[[Function], Function]:
        """Registers the kernel of an operator that has no tensors to tell the device by."""

        def register(function: Function) -> Function:
            self._register("factory", function, "BackendSelect")
            return function

        return register

    def impl_abstract(self, _stacklevel: int = 2) -> Callable[[Function], Function]:
        """Registers what the result looks like without data."""

        def register(function: Function) -> Function:
            if "abstract" not in self._impls:
                register_fake(self._qualname, function, lib=self._lib)
            self._register("abstract", function)
            return function

        return register

    # The derivative ---------------------------------------------------------------------------------------------------

    def impl_save_for_backward(self, _stacklevel: int = 2) -> Callable[[Function], Function]:
        """Registers `save(inputs, output)`, which returns what the backward needs; `inputs` is a named tuple."""
        return self._half_of_derivative("save_for_backward")

    def impl_backward(
        self, output_differentiability: Any = None, _stacklevel: int = 2
    ) -> Callable[[Function], Function]:
        """Registers `backward(ctx, saved, *grads)`, which returns a dict of gradients by the arguments' names."""
        given, count = output_differentiability, len(self._schema.returns)
        if given is not None and not (
            isinstance(given, list) and len(given) == count and all(isinstance(one, bool) for one in given)
        ):
            raise RuntimeError(
                "impl_backward(output_differentiability): expected output_differentiability to be a list of bools with "
                f"length equal to the number of outputs of this CustomOp got: {given}"
            )
        return self._half_of_derivative("backward", given)

    def _half_of_derivative(
        self, kind: str, differentiable: list[bool] | None = None
    ) -> Callable[[Function], Function]:
        def register(function: Function) -> Function:
            self._check_differentiable()
            self._register(kind, function)
            if kind == "backward":
                self._output_differentiability = differentiable
            if not {"backward", "save_for_backward"} - self._impls.keys():
                undo = register_function_derivative(
                    self._ophandle, self._backward, self._save, place=place_of(function)
                )
                self._lib.undo_with(undo)
            return function

        return register

    def _check_differentiable(self) -> None:
        """RuntimeError for an operator that can have no derivative by this interface, or has one already."""
        schema, op = self._schema, self._ophandle
        problem = ""
        if schema.is_mutable:
            problem = "non-functional operator"
        elif not schema.returns:
            problem = "operator with no returns"
        elif any(one.alias_info is not None for one in schema.returns):
            problem = "operator that returns views"
        elif any(str(one.type) not in DIFFERENTIABLE for one in schema.returns):
            problem = f"operator with return not in {DIFFERENTIABLE}"
        if problem:
            raise RuntimeError(
                f"Cannot use torch._custom_ops APIs to register backward formula for {problem}. Got operator "
                f"{self._qualname} with schema: {schema}"
            )
        for key in ("CompositeImplicitAutograd", "Autograd", "AutogradCPU", "AutogradCUDA"):
            if op.has_kernel_for_dispatch_key(key):
                raise RuntimeError(
                    f"impl_backward/impl_save_for_backward: the operator {self._qualname} already has a registration "
                    f"to DispatchKey::{key}, by which it is differentiated; remove it, or leave out the formula"
                )

    def _save(self, ctx: Any, inputs: Any, output: Any) -> None:
        names = [argument.name for argument in self._schema.arguments]
        given = namedtuple(f"{self._opname}_args", names)(*inputs)
        leaves, ctx.structure = tree_flatten(self._impls["save_for_backward"][0](given, output))
        ctx.places = [isinstance(leaf, Tensor) for leaf in leaves]
        ctx.save_for_backward(*(leaf for leaf in leaves if isinstance(leaf, Tensor)))
        ctx.others = [leaf for leaf in leaves if not isinstance(leaf, Tensor)]
        constant: list[Any] = []
        results = output if len(self._schema.returns) > 1 else (output,)
        for i, (result, wanted) in enumerate(zip(results, self._output_differentiability or (), strict=False)):
            if not wanted:
                constant += (one for one in tree_leaves(result) if isinstance(one, Tensor))
            elif any(not isinstance(one, Tensor) for one in tree_leaves(result)):
                raise RuntimeError(
                    f"With output_differentiability={self._output_differentiability}. At idx {i}, we received an "
                    f"object of type {type(result)} that is not a Tensor, so it cannot have be marked as "
                    "differentiable in output_differentiability."
                )
        ctx.mark_non_differentiable(*constant)

    def _backward(self, ctx: Any, *gradients: Any) -> Any:
        tensors, others = iter(ctx.saved_tensors), iter(ctx.others)
        leaves = [next(tensors if is_tensor else others) for is_tensor in ctx.places]
        saved = tree_unflatten(leaves, ctx.structure)
        function, place = self._impls["backward"]
        found = function(ctx, saved, *gradients)

        def fail(problem: str) -> NoReturn:
            raise RuntimeError(f"In the backward function defined for {self._qualname} at {place} using the CustomOp "
                               f"API, {problem}")  # fmt: skip

        if not isinstance(found, dict):
            fail(f"expected the output of the backward function to be a dict but got {type(found)}")
        of_tensors = {argument.name for argument in self._schema.arguments if "Tensor" in str(argument.type)}
        if found.keys() != of_tensors:
            fail(
                f"expected the returned grad_input dict to have keys {of_tensors} but got {set(found)}. The backward "
                "function must return a gradient (can be None) for each arg to the CustomOp that may be a Tensor or "
                "Sequence[Tensor]. Args declared to be non-Tensor-like types should not appear in the grad_input dict"
            )
        counts = ctx._node().counts or [None] * len(self._names())
        return tuple(
            self._checked(name, found.get(name), count, fail) for name, count in zip(self._names(), counts, strict=True)
        )

    def _names(self) -> list[str]:
        return [argument.name for argument in self._schema.arguments][: self._schema.kwarg_only_start]

    def _checked(self, name: str, gradient: Any, count: int | None, fail: Function) -> Any:
        """The gradient of one argument, or of the `count` tensors of a list."""
        if count is None:
            if not isinstance(gradient, Tensor | None):
                fail(f"for input '{name}' expected the gradient to be either None or a Tensor but got {type(gradient)}")
            return gradient
        if not isinstance(gradient, list):
            fail(
                f"for input '{name}' expected the grad_input dict to hold a list of gradients but got {type(gradient)}"
            )
        if len(gradient) != count:
            fail(f"for input '{name}' expected the grad_input dict to hold a list of {count} gradients but got "
                 f"{len(gradient)}")  # fmt: skip
        for i, one in enumerate(gradient):
            if not isinstance(one, Tensor | None):
                fail(f"for input '{name}' expected the grad_input dict to hold a list of None or Tensor gradients, got "
                     f"object of {type(one)} at index {i}")  # fmt: skip
        return gradient


class Undifferentiated:
    """The derivative of an operator for as long as not both of its functions are registered: an error."""

    def __init__(self, custom: CustomOp) -> None:
        self.custom = custom

    def begin(self, op: OpOverload, stack: list[Any]) -> NoReturn:
        halves = ("backward", "save_for_backward")
        for present, missing in (halves, halves[::-1]):
            if present in self.custom._impls:
                raise RuntimeError(
                    f"We found a '{present}' registration for {self.custom} at {self.custom._impls[present][1]} but "
                    f"were unable to find a '{missing}' registration. To use the CustomOp API to register a backward "
                    "formula, please provide us both a backward function and a 'save for backward' function via "
                    "`impl_backward` and `impl_save_for_backward` respectively."
                )
        raise RuntimeError(f"Autograd has not been implemented for operator {self.custom}")

    def finish(self, op: OpOverload, node: Any, stack: list[Any], result: Any) -> Any:
        """Never called: there is no node."""


def define(qualname: str, schema: str, tags: Iterable[Any] = ()) -> CustomOp:
    """Defines the operator. ValueError where it writes an argument, returns views or nothing, or names one `self`."""
    namespace, name = parse_qualname(qualname)
    validate_namespace(namespace)
    try:
        parsed = parse_schema(f"{namespace}::{name}{schema}")
    except Exception as problem:
        raise AssertionError(f"Invalid function schema: {name}{schema}") from problem
    if parsed.is_mutable or not parsed.returns or any(one.alias_info is not None for one in parsed.returns):
        if parsed.arguments and parsed.arguments[0].name == "self":
            raise ValueError(
                f"custom_op does not support arguments named 'self'. Please rename your argument: {parsed}"
            )
        raise ValueError(
            "custom_op only supports functional operators (ops that do not mutate any inputs, do not return views of "
            f"the inputs, and has at least one return). Got the following non-functional schema: {parsed}"
        )
    library = Library(namespace, "FRAGMENT")
    library.define(f"{name}{schema}", tags=list(tags))
    op = operator_named(f"{namespace}::{name}")
    made = CustomOp(library, namespace, parsed, name, op, _private_access=True)
    library.undo_with(DERIVATIVES.override(op, Undifferentiated(made), op.place))
    return made


def custom_op(qualname: str, manual_schema: str | None = None) -> Callable[[Function], CustomOp]:
    """Makes an operator of a function's name and annotations, or of a schema that fits the function."""

    def make(function: Function) -> CustomOp:
        check_function(qualname, function)
        if manual_schema is not None:
            validate_function_matches_schema(parse_schema(f"{function.__name__}{manual_schema}"), function)
        made = define(qualname, infer_schema(function, mutates_args=()) if manual_schema is None else manual_schema)
        for name in ("__name__", "__module__", "__doc__"):
            setattr(made, name, getattr(function, name))
        return made

    return make


def check_function(qualname: str, function: Any) -> None:
    """ValueError for what is no function, or has another name than the operator."""
    if not inspect.isfunction(function):
        raise ValueError(f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}")
    name = parse_qualname(qualname)[1]
    if function.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
            f"'{function.__name__}'. Please either change the name of `func` or the qualname that is passed to "
            "`custom_op`"
        )


def validate_function_matches_schema(schema: FunctionSchema, func: Function) -> None:
    """ValueError where a function has other parameters than the schema, or has annotations or defaults."""
    signature = inspect.signature(func)
    parameters = list(signature.parameters.values())
    kinds = inspect.Parameter
    if any(one.kind not in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY) for one in parameters):
        raise ValueError(
            "custom_op(..., manual_schema)(func): positional-only args, varargs, and kwargs are not supported. Please "
            f"rewrite `func` to not have them. Got `func` with signature: {signature}"
        )
    if func.__annotations__:
        raise ValueError(
            "custom_op(..., manual_schema)(func): When passing in a manual schema, we expect `func` to have no type "
            f"annotations to avoid ambiguity. Got `func` with signature: {signature}"
        )
    if [(one.name, one.kind is kinds.KEYWORD_ONLY) for one in parameters] != [
        (argument.name, argument.kwarg_only) for argument in schema.arguments
    ]:
        raise ValueError(
            "custom_op(..., manual_schema)(func): When passing in a manual schema, we expect `func`'s signature to "
            f"match `manual_schema` (aside from type annotations). func's signature: {signature}, manual_schema: "
            f"{schema}"
        )
    if any(one.default is not one.empty for one in parameters) or any(
        one.has_default_value() for one in schema.arguments
    ):
        raise ValueError(
            "custom_op(..., manual_schema)(func): neither func nor manual_schema should have default arguments. Got "
            f"func's signature: {signature}, manual_schema: {schema}"
        )


def validate_namespace(ns: str) -> None:
    """ValueError for a namespace that is PyTorch's own, or none."""
    if "." in ns:
        raise ValueError(f'custom_op(..., ns="{ns}"): expected ns to not contain any . (and be a valid variable name)')
    if ns in RESERVED_NS:
        raise ValueError(f"custom_op(..., ns='{ns}'): '{ns}' is a reserved namespace, please choose something else. ")


def parse_qualname(qualname: str) -> tuple[str, str]:
    """Returns the namespace and the name. ValueError for a name without the one, or with an overload."""
    namespace, separator, name = qualname.partition("::")
    if not separator:
        raise ValueError(
            f"Expected there to be a namespace in {qualname}, i.e. The operator name should look something like ns::foo"
        )
    if "." in name:
        raise ValueError(
            "The torch.custom_ops APIs do not handle overloads, i.e. operator names with '.' in them. Please name your "
            f"operator something like ns::foo. Got: {qualname}"
        )
    return namespace, name


def get_op(qualname: str) -> OpOverload:
    """Returns the default overload of that name. ValueError where there is none."""
    namespace, name = parse_qualname(qualname)
    try:
        return getattr(getattr(ops, namespace), name).default
    except AttributeError:
        raise ValueError(
            f"Could not find the operator {qualname}. Please make sure you have already registered the operator and "
            "(if registered from C++) loaded it via torch.ops.load_library."
        ) from None


def _find_custom_op(qualname: str, also_check_torch_library: bool = False) -> CustomOp:
    """Returns the `CustomOp` of that name, or one over an operator that was defined in another way."""
    if qualname in global_registry:
        return global_registry[qualname]
    if not also_check_torch_library:
        raise RuntimeError(f'Could not find custom op "{qualname}". Did you register it via the torch._custom_ops API?')
    op = get_op(qualname)
    library = Library(op.namespace, "FRAGMENT")
    return CustomOp(library, op.namespace, op.schema, op._opname, op, _private_access=True)
