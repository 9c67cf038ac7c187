"""`redispatch.overrides`: PyTorch's public face of `__torch_function__` and function modes.

What happens to an overridden call is in dispatch/protocols/override.py. Here are the questions about it: which
functions can be overridden (by looking at them: a function that asks is marked, or made of lanes), what they are
called, and what takes the place of one in a test.

Read next: modes/logging_mode.py and subclasses/, which use it.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import keyword
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from operator import attrgetter
from typing import Any

from redispatch.dispatch import (
    STATE,
    FixedEntryPoint,
    OpOverload,
    OpOverloadPacket,
    Region,
    Setting,
    Signature,
    TorchFunctionMode,
    asks,
    entry_point_of,
    handle_torch_function,
    overrides,
    pop_mode,
    push_mode,
    within,
    without_overrides,
)
from redispatch.dispatch.protocols.override import has_torch_function_attribute, one_per_type
from redispatch.dispatch.schema.schema import NO_DEFAULT
from redispatch.dispatch.tensor import Tensor, overridable_property
from redispatch.dispatch.tensor.tensor import nowrap_functions

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
    "resolve_name",
    "skip_torch_function_mode_dispatch",
    "wrap_torch_function",
]


class BaseTorchFunctionMode(TorchFunctionMode):
    """A function mode that hands every call on."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


# For functions of one's own ------------------------------------------------------------------------------------------


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Returns whether a function mode is active or one of these arguments overrides; not so for a call that skips its
    hop."""
    state = STATE.get()
    if state.skips_hop:
        STATE.set(state.replace(skips_hop=False))
        return False
    if state.function_modes and state.overrides != "none":
        return True
    if not isinstance(relevant_args, Iterable):
        raise TypeError("expected a sequence")
    return state.overrides == "all" and any(overrides(value) for value in relevant_args)


def has_torch_function_unary(argument: Any) -> bool:
    return has_torch_function((argument,))


def has_torch_function_variadic(*arguments: Any) -> bool:
    return has_torch_function(arguments)


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """Makes a Python function overridable; `dispatcher(*args)` gives the arguments that may override it."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @asks
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """`func(*args, **kwargs)` without asking for overrides of `func` itself; what it calls in turn asks as ever.

    With it, a handler runs the body of a Python function and still sees the calls in there.
    """
    kwargs = kwargs or {}
    if _is_entry_point(func) or isinstance(getattr(func, "__self__", None), overridable_property):
        with without_overrides():  # an operator: there is nothing in it that could be overridden
            return func(*args, **kwargs)
    if is_overridable(func) and hasattr(func, "__wrapped__"):
        return func.__wrapped__(*args, **kwargs)
    token = STATE.set(STATE.get().replace(skips_hop=True))  # it will ask by `has_torch_function`
    try:
        return func(*args, **kwargs)
    finally:
        STATE.reset(token)


class _SkipsOneHop(TorchFunctionMode):
    """A mode that runs the first function as it is, and hands on the others."""

    first = True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first, self.first = self.first, False
        return redispatch_function(func, types, args, kwargs) if first else func(*args, **(kwargs or {}))


@contextmanager
def skip_torch_function_mode_dispatch(mode: TorchFunctionMode) -> Iterator[None]:
    """A region in a handler of `mode`: the next function runs as it is, and `mode` sees the functions inside it.

    >>> import redispatch as rd
    >>> from redispatch.overrides import TorchFunctionMode, skip_torch_function_mode_dispatch
    >>> class Calls(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         with skip_torch_function_mode_dispatch(self):
    ...             return func(*args, **(kwargs or {}))
    >>> x = rd.ones(2, requires_grad=True)
    >>> loss, handle = x.sum(), x.register_hook(lambda grad: grad.neg())
    >>> with Calls():
    ...     rd.autograd.backward(loss, rd.ones(()))
    ones
    backward
    expand
    neg
    """
    with nullcontext() if mode in STATE.get().function_modes else mode, _SkipsOneHop():
        yield


def is_tensor_like(value: Any) -> bool:
    """Returns whether `value` is a tensor or its class has a `__torch_function__`."""
    return type(value) is Tensor or hasattr(value, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """The functions whose results `Tensor.__torch_function__` does not convert to the subclass."""
    return set(nowrap_functions())


# Which functions can be overridden -----------------------------------------------------------------------------------

# PyTorch lists these among those that cannot be overridden, though handlers see some of them: they make tensors of what
# may be one, have another name under which they are listed, are no functions, or no business of a subclass. Tests that
# go through the lists, one function after the other, count on that.
NOT_LISTED = frozenset(
    """
    _functional_sym_constrain_range _make_dep_token
    as_strided as_tensor asarray can_cast default_generator device dtype enable_grad fill finfo from_file from_numpy
    frombuffer has_lapack has_mkl iinfo inference_mode is_vulkan_available layout linspace logspace memory_format
    no_grad normal promote_types qscheme rand_like randint_like randn_like range result_type set_grad_enabled
    sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
    sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor vander
    export.export export.load export.register_dataclass export.save nested.to_padded_tensor
    nn.functional._canonical_mask nn.functional._none_or_dtype
    nn.functional.hardsigmoid nn.functional.hardswish nn.functional.sigmoid nn.functional.tanh nn.functional.upsample
    nn.functional.upsample_bilinear nn.functional.upsample_nearest
    overrides.handle_torch_function overrides.has_torch_function overrides.has_torch_function_unary
    overrides.has_torch_function_variadic
    Tensor.__class__ Tensor.__delattr__ Tensor.__delitem__ Tensor.__dir__ Tensor.__getattribute__ Tensor.__hash__
    Tensor.__init__ Tensor.__init_subclass__ Tensor.__iter__ Tensor.__new__ Tensor.__setattr__ Tensor.__subclasshook__
    Tensor.__torch_dispatch__ Tensor.__torch_function__ Tensor._addmm_activation Tensor._conj Tensor._conj_physical
    Tensor._dtensor__new__ Tensor._fix_weakref Tensor._has_symbolic_sizes_strides.__get__ Tensor._is_all_true
    Tensor._is_any_true Tensor._is_zerotensor Tensor._lazy_clone Tensor._make_subclass Tensor._make_wrapper_subclass
    Tensor._neg_view Tensor._philox_normal_ Tensor._philox_uniform_ Tensor._python_dispatch.__get__
    Tensor._reduce_ex_internal Tensor._rev_view_func_unsafe Tensor._to_sparse Tensor._to_sparse_bsc
    Tensor._to_sparse_bsr Tensor._to_sparse_csc Tensor._to_sparse_csr Tensor._typed_storage Tensor._use_count
    Tensor._view_func Tensor._view_func_unsafe
    Tensor.new Tensor.new_empty Tensor.new_empty_strided Tensor.new_full Tensor.new_ones Tensor.new_tensor
    Tensor.new_zeros Tensor.reinforce Tensor.stride Tensor.to_padded_tensor Tensor.to_sparse_bsc Tensor.to_sparse_bsr
    Tensor.to_sparse_coo Tensor.to_sparse_csc Tensor.to_sparse_csr Tensor.unflatten
    """.split()
)
# these in neither list: no names of PyTorch's, or names that it lists in another module
UNLISTED = frozenset(
    """
    DisableTorchFunction DisableTorchFunctionSubclass breakpoint define_backend define_key eig explain from_dlpack
    install installed is_autocast_available lstsq lu matrix_rank nn.init.overridable_initializer pca_lowrank
    segment_reduce set_default_dtype solve svd_lowrank symeig to_dlpack uninstall unique while_loop without_overrides
    without_subclasses
    Tensor.__array_namespace__ Tensor.alias Tensor.combinations Tensor.mutable_data_ptr Tensor.to_device
    Tensor.to_normal_
    """.split()
)
# and for these of its private names it has stand-ins; for `_sym_` and `_copy` functions, too
PRIVATE = frozenset(
    """
    _assert_async _functional_assert_async _fused_rms_norm _native_batch_norm_legit _rowwise_prune _segment_reduce
    _wrapped_linear_prepack _wrapped_quantized_linear_prepacked
    """.split()
)
NOT_TESTED = frozenset(("_sym_log2", "from_dlpack", "_test_autograd_multiple_dispatch_view_copy"))
LISTED_TWICE = frozenset(("chunk", "matmul", "split", "stack"))  # functions of Python, and of C++ under the same name
SAME = {
    "__abs__": "abs",
    "__neg__": "neg",
    "__pos__": "positive",
    "__rdiv__": "__rtruediv__",
    "__idiv__": "__itruediv__",
}
_NAMESPACES = (
    *("", "functional", "nn.functional", "nn.init", "linalg", "fft", "special", "distributed.distributed_c10d"),
)


def _namespaces() -> Iterator[tuple[str, Any]]:
    """(name as in PyTorch, module or class) of all that a program calls."""
    library = __name__.rpartition(".")[0]
    for path in _NAMESPACES:
        yield f"torch.{path}".rstrip("."), import_module(f"{library}.{path}".rstrip("."))
    yield "torch.Tensor", Tensor


def _is_entry_point(function: Any) -> bool:
    if isinstance(function, OpOverload | OpOverloadPacket):
        return True
    return isinstance(function, types.FunctionType) and "entry_point" in function.__globals__


def is_overridable(function: Any) -> bool:
    """Returns whether a public function asks for overrides."""
    return _is_entry_point(function) or isinstance(getattr(function, "__overridable__", None), str)


def _takes_tensors(function: Any) -> bool:
    """Returns whether an argument may be a tensor, and so may override. A function mode is asked for factories, too."""
    schemas = [op.schema for op in getattr(function, "operators", ())]
    return not schemas or any(schema.tensor_positions or schema.tensor_list_positions for schema in schemas)


class _Listing:
    """The functions in the namespaces: those that can be overridden, those that cannot, and all their names."""

    def __init__(self) -> None:
        self.overridable: dict[Any, list[Callable[..., Any]]] = {}
        self.ignored: set[Callable[..., Any]] = set()
        self.tested: list[Callable[..., Any]] = []  # what else can be overridden
        self.names: dict[Callable[..., Any], str] = {}
        for path, namespace in _namespaces():
            names = [name for name in sorted(PRIVATE) if hasattr(namespace, name)] if path == "torch" else []
            for name in dict.fromkeys([*dir(namespace), *names]):  # some are made when they are asked for
                value = (
                    inspect.getattr_static(namespace, name, None) if namespace is Tensor else getattr(namespace, name)
                )
                if isinstance(value, property):
                    self._enter_property(f"{path}.{name}", value)
                elif (
                    callable(value) and not isinstance(value, types.ModuleType) and getattr(object, name, None) != value
                ):
                    self._enter(f"{path}.{name}", namespace, name, value)
        library = import_module(__name__.rpartition(".")[0])
        self.overridable[library] += [library.autocast, *(getattr(library, name) for name in sorted(LISTED_TWICE))]
        self.ignored |= {attrgetter(path)(library) for path in NOT_LISTED}

    def _enter_property(self, path: str, value: property) -> None:
        if isinstance(value, overridable_property):
            self.names[value.__get__] = f"{path}.__get__"
            self.names[value.__set__] = f"{path}.__set__"
            self.overridable[value] = [value.__get__]

    def _enter(self, path: str, namespace: Any, name: str, value: Any) -> None:
        if is_overridable(value):
            former = self.names.get(value, "._").rpartition(".")[2]
            if namespace is Tensor or former.startswith("_") or name == value.__name__:  # not spmm, which is mm
                self.names[value] = path  # the last room's: conv1d is at home in nn.functional, einsum in functional
        elif isinstance(value, types.FunctionType):
            self.names.setdefault(value, path)
        short = path.removeprefix("torch.")
        is_private = name.startswith("_") or name.endswith("_") or isinstance(value, type)
        if short in NOT_LISTED:
            return
        if namespace is Tensor and name in SAME:
            value = getattr(Tensor, SAME[name])
        if is_overridable(value) and _takes_tensors(value):
            if (namespace is Tensor or not is_private) and short not in UNLISTED:
                self.overridable.setdefault(namespace, []).append(value)
            elif namespace is Tensor or name in NOT_TESTED:
                return
            elif not is_private or name in PRIVATE or name.startswith("_sym_") or name.endswith("_copy"):
                self.tested.append(value)
        elif isinstance(value, types.FunctionType) and not is_private and short not in UNLISTED:
            self.ignored.add(value)


@functools.cache
def _listing() -> _Listing:
    return _Listing()


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """By module (and Tensor), the public functions and methods that can be overridden; by property, its getter."""
    return {namespace: list(functions) for namespace, functions in _listing().overridable.items()}


def get_ignored_functions() -> set[Callable[..., Any]]:
    """The public functions that no argument can override: factories, settings and what takes no tensor."""
    return set(_listing().ignored)


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """For each function that can be overridden, one with the same parameters, which checks them and returns -1."""
    listed = itertools.chain(*_listing().overridable.values())
    functions = [function for function in listed if not isinstance(function, type)]
    functions += _listing().tested
    functions += filter(is_overridable, vars(import_module("redispatch.nn.init")).values())
    return {function: _stand_in(signatures_of(function)) for function in functions}


def _stand_in(signatures: list[inspect.Signature]) -> Callable[..., Any]:
    def stand_in(*args: Any, **kwargs: Any) -> int:
        for i, signature in enumerate(signatures, 1):
            try:
                signature.bind(*args, **kwargs)
                break
            except TypeError:
                if i == len(signatures):
                    raise
        return -1

    stand_in.__signature__ = signatures[0]  # type: ignore[attr-defined]  # where `inspect` looks for it
    return stand_in


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """The parameters of a function that can be overridden; of the first of its overloads, where it has several."""
    return signatures_of(function)[0]


def signatures_of(function: Callable[..., Any]) -> list[inspect.Signature]:
    """The parameters of each overload of a function that can be overridden."""
    kinds = inspect.Parameter
    if isinstance(getattr(function, "__self__", None), overridable_property):
        return [inspect.Signature([kinds("self", kinds.POSITIONAL_ONLY)])]
    if not _is_entry_point(function) or hasattr(function, "__signature__"):
        return [inspect.signature(function)]
    entry = entry_point_of(function)
    if isinstance(entry, FixedEntryPoint):
        return [inspect.Signature([kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in entry.names])]
    return [_signature_of(form) for form in entry.forms()]


def _signature_of(form: Any) -> inspect.Signature:
    kinds = inspect.Parameter
    if not isinstance(form, Signature):  # written by hand: the operator's own first arguments
        named = [kinds(name, kinds.POSITIONAL_OR_KEYWORD, default=None) for name in form.names[1:]]
        return inspect.Signature([kinds("self", kinds.POSITIONAL_OR_KEYWORD), *named])
    parameters = [kinds("self", kinds.POSITIONAL_OR_KEYWORD)] if form.method else []
    needs_no_more = False
    for one in form.parameters:
        needs_no_more |= not one.kwarg_only and one.default is not NO_DEFAULT
        default = one.default if one.default is not NO_DEFAULT else None if needs_no_more else kinds.empty
        kind = kinds.KEYWORD_ONLY if one.kwarg_only else kinds.POSITIONAL_OR_KEYWORD
        name = f"{one.name}_" if keyword.iskeyword(one.name) else one.name
        parameters.append(kinds(name, kind, default=default))
    if form.out is not None:
        parameters.append(kinds("out", kinds.KEYWORD_ONLY, default=None))
    return inspect.Signature(parameters)


# Names ---------------------------------------------------------------------------------------------------------------


def resolve_name(function: Any) -> str | None:
    """A human's name for what a handler was given: `torch.add`, `torch.Tensor.sum`, `torch.Tensor.shape.__get__`.

    None for what is no function of this library.
    """
    if isinstance(function, OpOverload | OpOverloadPacket):
        return str(function)
    try:
        return _listing().names.get(function)
    except TypeError:  # it cannot be hashed, so it is none of ours
        return None


def is_tensor_method_or_property(function: Callable[..., Any]) -> bool:
    """Returns whether `function`, as a handler sees it, is an overridable method or property of Tensor."""
    name = resolve_name(function)
    return name is not None and name.startswith("torch.Tensor.") and function not in _listing().ignored


# State ---------------------------------------------------------------------------------------------------------------


class enable_reentrant_dispatch(Region):
    """Inside a `__torch_dispatch__` handler: the state in which the user made the call, so that autograd works.

    Errors: RuntimeError outside of a handler.
    """

    def __enter__(self) -> None:
        entry = STATE.get().entry
        if entry is None:
            raise RuntimeError("Accessing torch dispatch state outside of '__torch_dispatch__' is not allowed.")
        self._region = within(entry)
        self._region.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._region.__exit__(*error)

    def clone(self) -> enable_reentrant_dispatch:
        return enable_reentrant_dispatch()


def _enable_torch_function() -> Setting:
    """A region in which modes and classes override, whatever the state around it says."""
    return Setting(overrides="all")


def _get_overloaded_args(relevant_args: Iterable[Any], get_type_fn: Any = type) -> list[Any]:
    """One argument for each class that overrides, in the order in which they are asked."""
    return one_per_type([value for value in relevant_args if has_torch_function_attribute(value)])


def _get_current_function_mode_stack() -> list[Any]:
    """The active function modes, the innermost last."""
    return list(STATE.get().function_modes)


def _get_current_function_mode() -> Any:
    modes = STATE.get().function_modes
    return modes[-1] if modes else None


_push_mode = push_mode


def _pop_mode() -> Any:
    """Takes the innermost function mode off the stack; RuntimeError where there is none."""
    return pop_mode("function_modes")


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """A region without the innermost function mode, which it hands out."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)
