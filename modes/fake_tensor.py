"""FakeTensorMode: programs run without data: shapes, strides, dtypes and devices alone.

    with FakeTensorMode() as mode:
        y = model(rd.empty(64, 3, 224, 224, device="cuda"))     # no memory, no GPU
        print(y.shape, y.device)

A FakeTensor says that it is on some device, and holds a tensor on the meta device. The mode runs every operator on
these, and dresses the results again. What depends on values is refused: an operator whose result's shape does
(DynamicOutputShapeException), or one that gives a Python number (DataDependentOutputException), unless the number is
that of a constant, which is remembered until it is written.

What it teaches: a mode and a subclass together. The subclass brings its mode along, so that fake tensors stay fake
outside of the region, too. How serious it is: for every day, where every operator has a meta kernel.

Source: PyTorch's FakeTensorMode. Read next: fake/tensor.py; fake/cache.py; fake/sizes.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from traceback import walk_stack
from typing import Any

import redispatch as rd
from redispatch.dispatch.library import operators
from redispatch.dispatch.symbolic import FAKE_CONTEXT, FakeImplCtx, ShapeEnv, Symbolic
from redispatch.dispatch.tensor import lay_out  # how a tensor comes to look otherwise in place
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _disable_infra_mode,
    _is_tensor_constructor,  # noqa: F401  # PyTorch has it in this module
    is_traceable_wrapper_subclass,
)

from .fake.cache import (  # noqa: F401  # some are PyTorch's names in this module
    CACHE,
    DispatchCacheInfo,
    TensorMetadata,
    _BypassDispatchCache,
    _CacheKeyState,
    extract_tensor_metadata,
    face_of,
    key_of,
)
from .fake.context import detect_fake_mode, maybe_get_fake_mode  # noqa: F401  # PyTorch has them in this module
from .fake.conversion import FakeCopyMode, FakeTensorConverter, is_fake  # noqa: F401  # PyTorch has them in this module
from .fake.real import keep_real, propagate, real_call
from .fake.sizes import UNBACKED, called, symbols_for, without_numbers
from .fake.tensor import (  # noqa: F401  # PyTorch has them in this module
    META,
    SWITCHES,
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    MetadataMismatchError,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    shown,
)


class FakeTensorMode(TorchDispatchMode):
    """The mode in which tensors are fake. One at a time: entering another one puts it in the place of the first.

    allow_non_fake_inputs: whether real tensors may meet fake ones; they become fake then.

    >>> import redispatch as rd
    >>> from redispatch.modes import FakeTensorMode
    >>> with FakeTensorMode():
    ...     y = rd.ones(1000, 1000) @ rd.ones(1000, 2)
    >>> y.shape
    torch.Size([1000, 2])
    """

    _mode_key = rd._C._TorchDispatchModeKey.FAKE  # its slot: below all other modes, whenever it is entered
    cache_enabled = True  # for a mode, too

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: ShapeEnv | None = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        self.allow_non_fake_inputs, self.allow_fallback_kernels = allow_non_fake_inputs, allow_fallback_kernels
        self.shape_env, self.export = shape_env, export
        self.allow_meta = SWITCHES[-1].fake_tensor_allow_meta
        self.propagate_real_tensors = SWITCHES[-1].fake_tensor_propagate_real_tensors
        if self.propagate_real_tensors:
            self.cache_enabled = False  # it knows nothing of elements
        self.static_shapes = shape_env is None if static_shapes is None else static_shapes
        outside = (at for at in walk_stack(None) if not at[0].f_globals.get("__name__", "").startswith("redispatch."))
        self._place = next((f"{frame.f_code.co_filename}:{line}" for frame, line in outside), "?")
        self._constants: list[weakref.ref[FakeTensor]] = []  # fakes whose values are known
        self.fake_tensor_converter = FakeTensorConverter()
        self.epoch = 0  # what was said of elements holds within one

    # Making fakes --------------------------------------------------------------------------------------------------

    def from_tensor(
        self,
        tensor: rd.Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """The fake of a tensor: the same one each time, as long as both live.

        static_shapes: whether its sizes are numbers; the mode's choice if not said. source: the tensor's name in what
        is said of symbols. symbolic_context: how each size is to be treated.

        A wrapper subclass that can be taken apart (`__tensor_flatten__`) keeps its class: what is inside becomes fake.
        """
        if isinstance(tensor, FakeTensor):
            if (
                not self.propagate_real_tensors
                and tensor.fake_mode is not self
                and self.shape_env is not None
                and tensor.fake_mode.shape_env is self.shape_env
            ):
                return FakeTensor(self, tensor.meta, tensor.device)
            if tensor.fake_mode is not self:
                raise self.mixed(tensor)
            return tensor
        converter = self.fake_tensor_converter
        fake: Any = converter.tensor_memo.get(tensor)
        if fake is None and is_traceable_wrapper_subclass(tensor):
            fake = self.from_wrapper(tensor, static_shapes, source, symbolic_context)
            converter.tensor_memo.remember(tensor, fake)
        elif fake is None:
            static = self.static_shapes if static_shapes is None else static_shapes
            with _disable_current_modes():  # this mode among them: what is inside a fake is none
                env = None if static else self.shape_env
                elem = converter.meta_like(tensor, env and symbols_for(env, tensor, source, symbolic_context))
            with rd.inference_mode() if tensor.is_inference() else nullcontext():
                fake = FakeTensor(self, elem, tensor.device)
            if self.propagate_real_tensors:
                keep_real(fake, tensor)
            fake.requires_grad_(tensor.requires_grad and tensor.is_leaf)
            converter.tensor_memo.remember(tensor, fake)
            if tensor.is_leaf and tensor.grad is not None:
                fake.grad = self.from_tensor(tensor.grad, static_shapes=static_shapes, source=f"{source}.grad")
            if isinstance(tensor, rd.nn.Parameter):
                fake._is_param = True
        return fake

    def is_our_fake(self, value: Any) -> bool:
        """Returns whether something is a fake tensor of this mode."""
        return isinstance(value, FakeTensor) and value.fake_mode is self

    # The cache ------------------------------------------------------------------------------------------------------

    @staticmethod
    def cache_info() -> DispatchCacheInfo:
        """Returns how many calls of all modes the cache has answered, filled and could not serve, by reason."""
        return CACHE.info()

    @staticmethod
    def cache_clear() -> None:
        """Empties the cache, and begins to count anew."""
        CACHE.clear()

    def _cache_key(self, state: _CacheKeyState, func: Any, args: Any, kwargs: Any) -> Any:
        """Returns the key of a call. _BypassDispatchCache where it has none."""
        key = key_of(self, func, args, kwargs, [])
        if type(key) is str:
            raise _BypassDispatchCache(key)
        return key

    def recipe(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, list[FakeTensor]]:
        """Returns how the result of a call is made, and of which fakes; None where the cache has no such call."""
        fakes: list[FakeTensor] = []
        key = key_of(self, func, args, kwargs, fakes) if self.cache_enabled else ""
        found = None if type(key) is str else CACHE.entries.get(key)
        if found is None or type(found) is str:
            return None, fakes
        CACHE.hits += 1
        return found, fakes

    def from_wrapper(self, tensor: Any, static_shapes: bool | None, source: Any, context: Any) -> Any:
        """A wrapper of the same class around fakes of what is inside, with sizes of its own as symbols."""
        static = self.static_shapes if static_shapes is None else static_shapes
        size, stride = tensor.shape, tensor.stride()
        if not static and self.shape_env is not None:
            with _disable_current_modes():
                size, stride, _ = symbols_for(self.shape_env, tensor, source, context)
        names, facts = tensor.__tensor_flatten__()
        inner, whole = {}, called(source)
        for name in names:
            part = whole and f"{whole}.{name}"
            inner[name] = self.from_tensor(getattr(tensor, name), static_shapes=static_shapes, source=part)
        fake = type(tensor).__tensor_unflatten__(inner, facts, rd.Size(size), tuple(stride))
        fake.requires_grad_(tensor.requires_grad and tensor.is_leaf)
        if isinstance(tensor, rd.nn.Parameter):
            fake._is_param = True
        return fake

    # Running operators ---------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The result from the cache, where a call like this one has been before; else as `computed` works it out."""
        kwargs = kwargs or {}
        if self.propagate_real_tensors:
            real = real_call(func, args, kwargs)  # first: what it writes is to be seen by fakes of views, too
            result = self.computed(func, args, kwargs)
            if real is not None:
                propagate(func, self.shape_env, result, real)
            return result
        if not self.cache_enabled:
            return self.computed(func, args, kwargs)
        fakes: list[FakeTensor] = []
        key = key_of(self, func, args, kwargs, fakes)
        recipe: Any = key if type(key) is str else CACHE.entries.get(key)
        if type(recipe) is str:
            CACHE.bypasses[recipe] += 1
            return self.computed(func, args, kwargs)
        if recipe is not None:
            CACHE.hits += 1
            return recipe.made(self, fakes)
        before = [face_of(one) for one in fakes]
        result = self.computed(func, args, kwargs)
        CACHE.enter(key, fakes, before, result)
        return result

    def computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result by the operator's kernel on the meta device."""
        kwargs = dict(kwargs)
        leaves = pytree.tree_leaves((args, kwargs))
        tensors = [one for one in leaves if isinstance(one, rd.Tensor)]
        fakes = [one for one in tensors if isinstance(one, FakeTensor)]
        real = [one for one in tensors if not isinstance(one, FakeTensor)] if len(fakes) < len(tensors) else []
        if any(is_traceable_wrapper_subclass(one) for one in real):
            return NotImplemented  # the wrapper takes itself apart, and comes back with what is inside
        if real and str(func) == "aten.lift_fresh.default":
            return self.constant(real[0])
        if real and not self.allow_non_fake_inputs:
            found = f"Found in {func}({', '.join(map(shown, args))})"
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                f"'allow_non_fake_inputs'. {found}\n  It has values: {self.named(real[0], func, args, kwargs)}\n"
                f"  The mode was made at {self._place}\n  To fix: pass mode.from_tensor(x) in its place."
            )
        for one in fakes:
            if one.fake_mode is not self:
                raise self.mixed(one, func, args, kwargs)
        if fakes and not real and all(one.constant is not None for one in fakes):
            known = self.of_constants(func, fakes, args, kwargs)
            if known is not NotImplemented:
                return known
        if not tensors and numbers_for_tensors(func, args):
            with _disable_current_modes():
                return self.constant(func(*args, **kwargs))
        if func._schema.is_mutable:
            self.forget_what_is_written(func, args, kwargs)
        unbacked = None if self.shape_env is None else UNBACKED.get(str(func))
        if unbacked is not None:
            return unbacked(self, *args, **kwargs)
        self.refuse_what_needs_values(func, args)
        device = self.device_of(func, tensors, kwargs)
        if self.shape_env is not None:
            args, kwargs = without_numbers(func, args, kwargs, bool(fakes))
        if "device" in kwargs or not fakes and takes_device(func):
            kwargs["device"] = META
        # a real tensor among fakes is one of the program's own: its sizes are numbers
        args, kwargs = pytree.tree_map_only(
            rd.Tensor, lambda one: self.from_tensor(one, static_shapes=True).meta, (args, kwargs)
        )
        token = FAKE_CONTEXT.set(FakeImplCtx(self.shape_env, lambda: DynamicOutputShapeException(func)))
        try:
            result = func(*args, **kwargs)
        except NotImplementedError as error:
            if getattr(error, "op", None) is not func:  # it has a kernel there, which says so
                raise
            raise UnsupportedOperatorException(func) from error
        finally:
            FAKE_CONTEXT.reset(token)
        return self.dressed(func, fakes, result, device)

    def mixed(self, tensor: FakeTensor, func: Any = None, args: Any = (), kwargs: Any = None) -> AssertionError:
        """The error where a fake is of another mode than this one."""
        return AssertionError(
            f"Mixing fake modes NYI x.fake_mode={tensor.fake_mode!r} vs self={self!r}\n"
            f"  x is {self.named(tensor, func, args, kwargs or {})}\n  x.fake_mode was made at "
            f"{tensor.fake_mode._place}, self at {self._place}\n  To fix: make all fakes by one mode; "
            "torch._guards.detect_fake_mode(x) gives that of a tensor."
        )

    def named(self, tensor: rd.Tensor, func: Any, args: Any, kwargs: Any) -> str:
        """A tensor for a message: which argument of the operator it is, and its metadata."""
        names = [argument.name for argument in func._schema.arguments] if func else []
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            if any(one is tensor for one in pytree.tree_leaves(value)):
                return f"argument '{name}' of {func}, {shown(tensor)}"
        return shown(tensor)

    def constant(self, value: rd.Tensor) -> FakeTensor:
        """A tensor made from Python numbers: its values are known."""
        made = self.from_tensor(value, static_shapes=True)
        if value.numel() <= 1:
            made.constant = value
            self._constants = [one for one in self._constants if one() is not None] + [weakref.ref(made)]
        return made

    def of_constants(self, func: Any, fakes: list[FakeTensor], args: Any, kwargs: Any) -> Any:
        """The result of an operator whose arguments are all known, where it is small; else NotImplemented."""
        away = kwargs.get("device") is not None and rd.device(kwargs["device"]).type != "cpu"
        if away or {rd.Tag.nondeterministic_seeded, rd.Tag.inplace_view} & set(func.tags):
            return NotImplemented
        with _disable_current_modes():
            args, kwargs = pytree.tree_map_only(FakeTensor, lambda one: one.constant, (args, kwargs))
            result = func(*args, **kwargs)
        tensors = [one for one in pytree.tree_leaves(result) if isinstance(one, rd.Tensor)]
        if any(one.numel() > 1 for one in tensors):
            for one in tensors:
                self.forget(one)  # a write to this view would not be seen in what it is a view of
            return NotImplemented
        by_value = {id(one.constant): one for one in fakes}
        made = (by_value[id(one)] if id(one) in by_value else self.constant(one) for one in tensors)
        return pytree.tree_map_only(rd.Tensor, lambda _: next(made), result)

    def forget_what_is_written(self, func: Any, args: Any, kwargs: Any) -> None:
        """Forgets the values of fakes that an operator writes, and of those that share memory with them."""
        arguments = func._schema.arguments
        given = dict(zip((argument.name for argument in arguments), args, strict=False)) | kwargs
        for argument in arguments:
            if argument.alias_info is not None and argument.alias_info.is_write:
                for one in pytree.tree_leaves(given.get(argument.name)):
                    if isinstance(one, FakeTensor) and one.constant is not None:
                        self.forget(one.constant)

    def forget(self, value: rd.Tensor) -> None:
        """Forgets the values of all fakes that share memory with one."""
        for one in [ref() for ref in self._constants]:
            known = None if one is None else one.constant
            if known is not None and known.untyped_storage()._cdata == value.untyped_storage()._cdata:
                one.constant = None  # type: ignore[union-attr]  # known is of it

    def refuse_what_needs_values(self, func: Any, args: Any) -> None:
        if str(func) == "aten.index.Tensor":
            if any(one is not None and one.dtype in (rd.bool, rd.uint8) for one in args[1]):
                raise DynamicOutputShapeException(rd.ops.aten.nonzero.default)  # of the mask
        elif rd.Tag.dynamic_output_shape in func.tags:
            raise DynamicOutputShapeException(func)
        if rd.Tag.data_dependent_output in func.tags:
            raise DataDependentOutputException(func)

    def device_of(self, func: Any, tensors: list[Any], kwargs: dict[str, Any]) -> Any:
        """The device that the result names: the one that was asked for, or that of its arguments.

        Errors: FakeTensorDeviceMismatchError where arguments with dimensions are on two devices.
        """
        if kwargs.get("device") is not None:
            return kwargs["device"]
        if func._opname.endswith("embedding_bag"):
            return tensors[0].device  # indices may be anywhere
        wide = [one._device for one in tensors if one._shape] or [one._device for one in tensors]
        if any(one != wide[0] for one in wide):
            first, second = list(dict.fromkeys(map(str, wide)))[:2]
            raise FakeTensorDeviceMismatchError(
                f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
            )
        return wide[0] if wide else rd.device("cpu")

    def dressed(self, func: Any, fakes: list[FakeTensor], result: Any, device: Any) -> Any:
        """The result as fake tensors; what was written is the argument itself, looking as it does now."""
        by_meta = {id(fake.meta): fake for fake in fakes}

        def one(value: rd.Tensor) -> FakeTensor:
            known = by_meta.get(id(value))
            if known is None:
                return FakeTensor(self, value, device)
            if len(known.shape) != len(value.shape) or known.shape != value.shape or known.stride() != value.stride():
                lay_out(known, value.shape, value.stride(), value.storage_offset())
            return known

        return pytree.tree_map_only(rd.Tensor, one, result)


def __getattr__(name: str) -> Any:
    if name == "_like_tensor_constructors":
        return tuple(op for op in operators() if op.packet_name.endswith("_like"))
    if name == "_device_not_kwarg_ops":
        return tuple(op for op in operators() if any(not one.kwarg_only for one in devices_of(op)))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@contextmanager
def disable_fake_tensor_cache(fake_mode: FakeTensorMode) -> Iterator[None]:
    """A region in which a mode asks operators each time."""
    former, fake_mode.cache_enabled = fake_mode.cache_enabled, False
    try:
        yield
    finally:
        fake_mode.cache_enabled = former


def get_plain_tensors(subclass: Any, *, out: list[Any]) -> list[Any]:
    """Adds the tensors of which a wrapper is made to a list, those of wrappers inside included; returns the list."""
    for name in subclass.__tensor_flatten__()[0]:
        inner = getattr(subclass, name)
        if is_traceable_wrapper_subclass(inner):
            get_plain_tensors(inner, out=out)
        else:
            out.append(inner)
    return out


@contextmanager
def unset_fake_temporarily() -> Iterator[Any]:
    """A region in which tensors are real; hands out the fake mode that is active outside, or None."""
    with _disable_infra_mode(FakeTensorMode._mode_key) as mode:
        yield mode


def numbers_for_tensors(func: Any, args: Any) -> bool:
    """Returns whether an operator on tensors was given Python numbers alone: `div(4, 4)`."""
    wanted = [one for one, given in zip(func._schema.arguments, args, strict=False) if str(one.type) == "Tensor"]
    return bool(wanted) and not any(isinstance(one, Symbolic) for one in args)


def takes_device(func: Any) -> bool:
    return any(argument.name == "device" for argument in func._schema.arguments)


def devices_of(func: Any) -> list[Any]:
    """Returns the arguments of an operator that are devices."""
    return [one for one in func._schema.arguments if str(one.type) in ("Device", "Optional[Device]")]


NOT_SUPPORTED = {
    "#data_dependent_output #dynamic_output_shape/values": "it depends on elements, and a fake tensor has none",
    "linalg_lstsq *ctc_loss* masked_scatter* @histograms": "no rule says what its results look like",
    "@ranges lstm.data gru.data rnn_*.data *pack_padded* *pad_packed*/values,autograd": "reads a number of a tensor",
    "combinations _pdist_forward pdist/values,autograd": "indexes by a plain tensor that it made",
    "log_sigmoid/out": "its buffer is a plain tensor",
    "_conj _neg_view fft_ifft fft_ihfft/deepcopy": "copies by way of the memory that it has not",
    "set_.source_Storage*/values": "it has no storage of its own",
    "*/pickle": "a fake tensor belongs to its mode, and goes nowhere without it",
    "#view/aliasing": "fake views have no memory that they could share",
}
