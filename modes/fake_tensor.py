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

Source: PyTorch's FakeTensorMode. Read next: dispatch/tensor/subclass.py; subclasses/two_tensor.py.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from traceback import walk_stack
from typing import Any

import redispatch as rd
from redispatch.dispatch.tensor import current_index, lay_out  # lay_out: how a tensor comes to look otherwise in place
from redispatch.utils import _pytree as pytree
from redispatch.utils._python_dispatch import (
    TorchDispatchMode,
    _detect_infra_mode,
    _disable_current_modes,
    _disable_infra_mode,
    _is_tensor_constructor,  # noqa: F401  # PyTorch has it in this module
    is_traceable_wrapper_subclass,
)

META = rd.device("meta")


class DynamicOutputShapeException(RuntimeError):
    """The shape of a result depends on values, and there are none. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A result is a Python value of a tensor without values. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class UnsupportedOperatorException(RuntimeError):
    """An operator that says for no fake what its result looks like. `func`: the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor, or a thing among an operator's arguments, of which there can be no fake."""


class MetadataMismatchError(RuntimeError):
    """A fake result that looks unlike the real one."""


class FakeTensorDeviceMismatchError(RuntimeError):
    """The arguments of an operator are on two devices."""


class FakeTensor(rd.Tensor):
    """A tensor with a face and no data. `fake_mode` runs its operators; `constant`: its value, where it is known."""

    meta: rd.Tensor
    fake_mode: FakeTensorMode
    fake_device: rd.device
    constant: rd.Tensor | None

    @staticmethod
    def __new__(
        cls, fake_mode: FakeTensorMode, elem: rd.Tensor, device: Any, *, constant: rd.Tensor | None = None
    ) -> FakeTensor:
        """A fake of `elem`, a meta tensor, on `device`: of its type's current one, where it has no index."""
        device = rd.device(device)
        if device.index is None and device.type not in ("cpu", "meta"):
            device = rd.device(device.type, current_index(device.type))
        made = rd.Tensor._make_wrapper_subclass(
            cls,
            elem.shape,
            elem.stride(),
            elem.storage_offset(),
            dtype=elem.dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        made.meta, made.fake_mode, made.fake_device, made.constant = elem, fake_mode, device, constant
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        with next(one.fake_mode for one in leaves if isinstance(one, FakeTensor)):
            return func(*args, **(kwargs or {}))

    def tolist(self) -> Any:
        """Nested lists of numbers, where they are known. DataDependentOutputException where they are not."""
        return self.item() if self.dim() == 0 else [row.tolist() for row in self]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        facts = [f"device='{self.fake_device}'"] if self.fake_device.type != "cpu" else []
        facts.append(f"size={tuple(self.shape)}")
        if self.dtype is not rd.get_default_dtype():
            facts.append(f"dtype={self.dtype}")
        if self.grad_fn is not None:
            facts.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            facts.append("requires_grad=True")
        text = f"FakeTensor(..., {', '.join(facts)})"
        return f"Parameter({text})" if isinstance(self, rd.nn.Parameter) else text


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

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: None = None,
        static_shapes: bool = True,
        export: bool = False,
    ) -> None:
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode(shape_env=...): sizes are numbers here, no symbols")
        self.allow_non_fake_inputs, self.allow_fallback_kernels = allow_non_fake_inputs, allow_fallback_kernels
        self.shape_env, self.static_shapes, self.export = shape_env, True, export
        outside = (at for at in walk_stack(None) if not at[0].f_globals.get("__name__", "").startswith("redispatch."))
        self._place = next((f"{frame.f_code.co_filename}:{line}" for frame, line in outside), "?")
        self._constants: list[weakref.ref[FakeTensor]] = []  # fakes whose values are known
        self._fakes: dict[int, tuple[weakref.ref[rd.Tensor], weakref.ref[FakeTensor]]] = {}

    # Making fakes --------------------------------------------------------------------------------------------------

    def from_tensor(self, tensor: rd.Tensor, *, static_shapes: bool = True, **ignored: Any) -> Any:
        """The fake of a tensor: the same one each time, as long as both live. Keywords about symbols change nothing.

        A wrapper subclass that can be taken apart (`__tensor_flatten__`) keeps its class: what is inside becomes fake.
        """
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise self.mixed(tensor)
            return tensor
        known = self._fakes.get(id(tensor))
        fake = known[1]() if known is not None and known[0]() is tensor else None
        if fake is None and is_traceable_wrapper_subclass(tensor):
            names, context = tensor.__tensor_flatten__()
            inner = {name: self.from_tensor(getattr(tensor, name)) for name in names}
            fake = type(tensor).__tensor_unflatten__(inner, context, tensor.shape, tensor.stride())
            fake.requires_grad_(tensor.requires_grad and tensor.is_leaf)
            self._fakes[id(tensor)] = weakref.ref(tensor), weakref.ref(fake)
        elif fake is None:
            with _disable_current_modes():  # this mode among them: what is inside a fake is none
                elem = rd.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=META)
            fake = FakeTensor(self, elem, tensor.device)
            fake.requires_grad_(tensor.requires_grad and tensor.is_leaf)
            self._fakes[id(tensor)] = weakref.ref(tensor), weakref.ref(fake)
            if isinstance(tensor, rd.nn.Parameter):
                fake._is_param = True
        return fake

    # Running operators ---------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        leaves = pytree.tree_leaves((args, kwargs))
        if any(is_traceable_wrapper_subclass(one) for one in leaves):
            return NotImplemented  # the wrapper takes itself apart, and comes back with what is inside
        fakes = [one for one in leaves if isinstance(one, FakeTensor)]
        real = [one for one in leaves if isinstance(one, rd.Tensor) and not isinstance(one, FakeTensor)]
        if str(func) == "aten.lift_fresh.default" and real:
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
        if func._schema.is_mutable:
            self.forget_what_is_written(func, args, kwargs)
        self.refuse_what_needs_values(func, args)
        device = self.device_of(func, leaves, kwargs)
        if "device" in kwargs or not fakes and takes_device(func):
            kwargs["device"] = META
        args, kwargs = pytree.tree_map_only(rd.Tensor, lambda one: self.from_tensor(one).meta, (args, kwargs))
        try:
            result = func(*args, **kwargs)
        except NotImplementedError as error:
            if getattr(error, "op", None) is not func:  # it has a kernel there, which says so
                raise
            raise UnsupportedOperatorException(func) from error
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
        made = self.from_tensor(value)
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

    def device_of(self, func: Any, leaves: list[Any], kwargs: dict[str, Any]) -> Any:
        """The device that the result names: the one that was asked for, or that of its arguments.

        Errors: FakeTensorDeviceMismatchError where arguments with dimensions are on two devices.
        """
        if kwargs.get("device") is not None:
            return kwargs["device"]
        tensors = [one for one in leaves if isinstance(one, rd.Tensor)]
        wide = [one.device for one in tensors if one.dim()] or [one.device for one in tensors]
        if len(set(map(str, wide))) > 1:
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
            if known.shape != value.shape or known.stride() != value.stride():
                lay_out(known, value.shape, value.stride(), value.storage_offset())
            return known

        return pytree.tree_map_only(rd.Tensor, one, result)


def is_fake(value: Any) -> bool:
    """Returns whether a tensor is fake, or a wrapper of nothing but fakes."""
    if is_traceable_wrapper_subclass(value):
        names = value.__tensor_flatten__()[0]
        return all(is_fake(getattr(value, name)) for name in names)
    return isinstance(value, FakeTensor)


class FakeTensorConverter:
    """PyTorch's name for what makes fakes: the mode does, which knows those that it has made."""

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: rd.Tensor, **ignored: Any) -> FakeTensor:
        return fake_mode.from_tensor(t)

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: rd.Tensor, device: Any, **ignored: Any) -> FakeTensor:
        return FakeTensor(fake_mode, t, device)


@contextmanager
def unset_fake_temporarily() -> Iterator[Any]:
    """A region in which tensors are real; hands out the fake mode that is active outside, or None."""
    with _disable_infra_mode(FakeTensorMode._mode_key) as mode:
        yield mode


def maybe_get_fake_mode(value: Any) -> FakeTensorMode | None:
    """Returns the mode of a fake tensor, or of what is in a wrapper of fakes; None for anything else."""
    if is_traceable_wrapper_subclass(value):
        modes = {maybe_get_fake_mode(getattr(value, name)) for name in value.__tensor_flatten__()[0]}
        if len(modes) != 1:
            raise AssertionError(f"expected one fake mode in {type(value).__name__}, but found {modes}")
        return modes.pop()
    return getattr(value, "fake_mode", None) if isinstance(value, FakeTensor) else None


def active_fake_mode() -> FakeTensorMode | None:
    """Returns the fake mode of this region, or None."""
    return _detect_infra_mode(FakeTensorMode._mode_key)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """Returns the one fake mode of this region and of the fakes among some values, or None.

    Errors: AssertionError where there are two.
    """
    modes = [active_fake_mode(), *map(maybe_get_fake_mode, pytree.tree_leaves(inputs))]
    found = list(dict.fromkeys(mode for mode in modes if mode is not None))
    if len(found) > 1:
        raise AssertionError(f"fake mode ({found[0]}) doesn't match mode ({found[1]})")
    return found[0] if found else None


class CrossRefFakeMode(TorchDispatchMode):
    """A region in which each operator runs on fakes, too, and both results must look the same.

    ignore_op_fn: says of an operator whether it is left out. Errors: MetadataMismatchError.
    """

    def __init__(
        self,
        ignore_op_fn: Callable[[Any], bool] | None = None,
        *,
        check_strides: bool = True,
        check_aliasing: bool = True,
        only_check_ops_with_meta: bool = True,
    ) -> None:
        self.ignore_op_fn, self.check_strides = ignore_op_fn, check_strides

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.ignore_op_fn is not None and self.ignore_op_fn(func):
            return func(*args, **kwargs)
        if types:
            return func(*args, **kwargs)  # what a subclass makes of it, no fake can tell
        fakes = FakeTensorMode(allow_non_fake_inputs=True)
        try:
            with _disable_current_modes(), fakes:
                given, named = pytree.tree_map_only(rd.Tensor, fakes.from_tensor, (args, kwargs))
                faked = func(*given, **named)
        except (DynamicOutputShapeException, DataDependentOutputException):
            return func(*args, **kwargs)  # what it looks like depends on values
        result = func(*args, **kwargs)
        for one, other in zip(pytree.tree_leaves(result), pytree.tree_leaves(faked), strict=True):
            self.compare(func, one, other)
        return result

    def compare(self, func: Any, real: Any, fake: Any) -> None:
        if not isinstance(real, rd.Tensor):
            return
        looks = [(one.shape, one.dtype, one.device.type, one.requires_grad) for one in (real, fake)]
        if looks[0] != looks[1] or self.check_strides and real.numel() and real.stride() != fake.stride():
            raise MetadataMismatchError(
                f"found mismatched tensor metadata for {func}: the kernel gives {shown(real)}, the fake {shown(fake)}"
            )


def takes_device(func: Any) -> bool:
    return any(argument.name == "device" for argument in func._schema.arguments)


def shown(value: Any) -> str:
    if isinstance(value, rd.Tensor) and not isinstance(value, FakeTensor):
        return f"tensor([...], size={tuple(value.shape)})"
    return repr(value)


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
