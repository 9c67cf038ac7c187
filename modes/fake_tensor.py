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
from redispatch.dispatch.library import operators
from redispatch.dispatch.symbolic import FAKE_CONTEXT, FakeImplCtx, ShapeEnv, SymFloat, SymInt, wrapped
from redispatch.dispatch.tensor import (  # lay_out: how a tensor comes to look otherwise in place
    UntypedStorage,
    current_index,
    lay_out,
)
from redispatch.overrides import TorchFunctionMode
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
        if not isinstance(device, rd.device):
            device = rd.device(device)
        if device.index is None and device.type not in ("cpu", "meta"):
            device = rd.device(device.type, current_index(device.type))
        made = rd.Tensor._make_wrapper_subclass(
            cls,
            elem._shape,
            elem._stride,
            elem._offset,
            dtype=elem._dtype,
            device=device,
            requires_grad=elem.requires_grad,
        )
        made.meta, made.fake_mode, made.fake_device, made.constant = elem, fake_mode, device, constant
        return made

    @property
    def _storage(self) -> Any:
        """Its memory is that of the tensor on the meta device: views of one fake share it."""
        return self.meta._storage if self._store is None else self._store

    @_storage.setter
    def _storage(self, value: Any) -> None:
        self._store = value

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        if any(is_traceable_wrapper_subclass(one) for one in leaves):
            return NotImplemented  # the wrapper takes itself apart, and comes back with what is inside
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
        shape_env: ShapeEnv | None = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        self.allow_non_fake_inputs, self.allow_fallback_kernels = allow_non_fake_inputs, allow_fallback_kernels
        self.shape_env, self.export = shape_env, export
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
                tensor.fake_mode is not self
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
                if env is None:
                    face: Any = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
                else:
                    face = symbols_for(env, tensor, source, symbolic_context)
                elem = rd.empty_strided(*face[:2], dtype=tensor.dtype, device=META)
                if tensor.layout is rd.strided and not is_traceable_wrapper_subclass(tensor):
                    elem._storage = converter.storage_like(tensor, elem)
                    lay_out(elem, elem.shape, elem.stride(), face[2])
            fake = FakeTensor(self, elem, tensor.device)
            fake.requires_grad_(tensor.requires_grad and tensor.is_leaf)
            converter.tensor_memo.remember(tensor, fake)
            if tensor.is_leaf and tensor.grad is not None:
                fake.grad = self.from_tensor(tensor.grad, static_shapes=static_shapes, source=f"{source}.grad")
            if isinstance(tensor, rd.nn.Parameter):
                fake._is_param = True
        return fake

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
        kwargs = dict(kwargs or {})
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
        args, kwargs = pytree.tree_map_only(rd.Tensor, lambda one: self.from_tensor(one).meta, (args, kwargs))
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


# Sizes as symbols -----------------------------------------------------------------------------------------------------


def called(source: Any) -> Any:
    """The name of a tensor, from what may be a name or have one; None where nobody said."""
    name = getattr(source, "name", source)
    return name() if callable(name) else name


def symbols_for(env: ShapeEnv, tensor: rd.Tensor, source: Any, context: Any) -> tuple[Any, Any, Any]:
    """The sizes, strides and offset of a tensor as symbols, where they are not 0 or 1.

    A stride that is the product of a size and its stride is that product: so a dense tensor needs symbols for sizes
    alone.
    """
    name = called(source) or f"t{env.named}"
    env.named += 1
    wanted = [treatment(tensor, dim, context) for dim in range(tensor.dim())]
    sizes = [
        size
        if how == "STATIC"
        else wrapped(env, env.create_symbol(size, f"{name}.size()[{dim}]", duck=how != "DYNAMIC"))
        for dim, (size, how) in enumerate(zip(tensor.shape, wanted, strict=True))
    ]
    strides: list[Any] = [None] * tensor.dim()
    products: dict[int, Any] = {}  # what a dense dimension would have for a stride, by its value now
    for stride, _, dim in sorted((stride, -dim, dim) for dim, stride in enumerate(tensor.stride())):
        if stride in (0, 1):
            strides[dim] = stride
        elif stride in products:
            strides[dim] = products[stride]
        elif all(how == "STATIC" for how in wanted):
            strides[dim] = stride
        else:
            strides[dim] = wrapped(env, env.create_symbol(stride, f"{name}.stride()[{dim}]"))
        products.setdefault(tensor.shape[dim] * stride, sizes[dim] * strides[dim])
    offset = tensor.storage_offset()
    return sizes, strides, wrapped(env, env.create_symbol(offset, f"{name}.storage_offset()")) if offset else 0


ELEMENTS = ("number", "Optional[number]", "Tensor")  # types of arguments that count as elements; but of `arange`, say


def without_numbers(func: Any, args: Any, kwargs: dict[str, Any], fakes: bool) -> Any:
    """The arguments with a plain number for each symbolic one that counts as an element: it is the kind that matters.

    Else a meta kernel would read it, and the graph would hold for this number alone.
    """
    arguments = func._schema.arguments
    names = {one.name for one in arguments if str(one.type) in ELEMENTS and (fakes or one.name == "fill_value")}

    def plain(name: str, value: Any) -> Any:
        if not isinstance(value, SymInt | SymFloat) or name not in names:
            return value
        return 1 if isinstance(value, SymInt) else 1.0

    args = tuple(plain(argument.name, value) for argument, value in zip(arguments, args, strict=False))
    return args, {name: plain(name, value) for name, value in kwargs.items()}


def treatment(tensor: rd.Tensor, dim: int, context: Any) -> str:
    """Returns the treatment of a size: as a symbol of its own, one that equal sizes share, or a number."""
    if context is not None and context.dynamic_sizes[dim] is not None:
        how: str = context.dynamic_sizes[dim].name
        return how if how in ("STATIC", "DYNAMIC") else "DUCK"
    if dim in getattr(tensor, "_dynamo_static_indices", ()):
        return "STATIC"
    return "DYNAMIC" if dim in getattr(tensor, "_dynamo_dynamic_indices", ()) else "DUCK"


def remembered(fake: FakeTensor, what: str, make: Callable[[], Any]) -> Any:
    """Returns what was said of a fake's elements, as long as they are not written: asked twice, it is one symbol."""
    memo = fake.__dict__.setdefault("_unbacked", {})
    found = memo.get(what)
    if found is None or found[0] != (fake._version, fake.fake_mode.epoch):
        found = memo[what] = (fake._version, fake.fake_mode.epoch), make()
    return found[1]


def meta_strided(mode: FakeTensorMode, like: FakeTensor, size: Any, stride: Any, dtype: Any) -> FakeTensor:
    with _disable_current_modes():
        return FakeTensor(mode, rd.empty_strided(size, stride, dtype=dtype, device=META), like.device)


def count(mode: FakeTensorMode, fake: FakeTensor, what: str, func: Any) -> Any:
    """Returns the number of elements of a fake that an operator picks: no more than it has."""
    env = mode.shape_env
    assert env is not None
    if not env.allow_dynamic_output_shape_ops:
        raise DynamicOutputShapeException(func)

    def make() -> Any:
        size = env.create_unbacked_size()
        total = fake.numel()
        if isinstance(total, int):
            (symbol,) = size.node.expr.free_symbols
            env.constrain_range(symbol, None, max(total, 2))
        return size

    return remembered(fake, what, make)


def fake_nonzero(mode: FakeTensorMode, self: FakeTensor) -> FakeTensor:
    size = count(mode, self, "nonzero", rd.ops.aten.nonzero.default)
    return meta_strided(mode, self, (size, self.dim()), (1, size), rd.int64)


def fake_masked_select(mode: FakeTensorMode, self: FakeTensor, mask: FakeTensor) -> FakeTensor:
    size = count(mode, mask, "nonzero", rd.ops.aten.masked_select.default)
    return meta_strided(mode, self, (size,), (1,), self.dtype)


def fake_item(mode: FakeTensorMode, self: FakeTensor) -> Any:
    env = mode.shape_env
    assert env is not None
    if not env.allow_scalar_outputs:
        raise DataDependentOutputException(rd.ops.aten._local_scalar_dense.default)
    if self.dtype is rd.bool:
        make = env.create_unbacked_symbool
    elif self.is_floating_point():
        make = env.create_unbacked_symfloat
    elif self.is_complex():
        raise DataDependentOutputException(rd.ops.aten._local_scalar_dense.default)
    else:
        make = env.create_unbacked_symint
    return remembered(self, "item", make)


def fake_index(mode: FakeTensorMode, self: FakeTensor, indices: list[Any]) -> Any:
    """Masks become the positions of what they let through."""
    found: list[Any] = []
    for one in indices:
        if isinstance(one, rd.Tensor) and one.dtype in (rd.bool, rd.uint8):
            one = mode.from_tensor(one)
            size = count(mode, one, "nonzero", rd.ops.aten.nonzero.default)
            found += [meta_strided(mode, one, (size,), (1,), rd.int64) for _ in range(one.dim())]
        else:
            found.append(one)
    metas = [None if one is None else mode.from_tensor(one).meta for one in found]
    with _disable_current_modes():
        result = rd.ops.aten.index.Tensor(self.meta, metas)
    return FakeTensor(mode, result, self.device)


def fake_unique(mode: FakeTensorMode, self: FakeTensor, *args: Any, func: str, dim: int | None = None) -> Any:
    """Values, positions and counts, as `unique` and its kin give them."""
    size = count(mode, self, f"unique {dim}", func)
    shape = [size] if dim is None else [*self.shape[:dim], size, *self.shape[dim + 1 :]]
    with _disable_current_modes():
        values = rd.empty(shape, dtype=self.dtype, device=META)
        inverse = rd.empty(self.shape if dim is None else self.shape[dim], dtype=rd.int64, device=META)
        counts = rd.empty(size, dtype=rd.int64, device=META)
    return tuple(FakeTensor(mode, one, self.device) for one in (values, inverse, counts))


def fake_repeat_interleave(mode: FakeTensorMode, repeats: FakeTensor, *, output_size: Any = None) -> FakeTensor:
    if output_size is None:
        assert mode.shape_env is not None
        output_size = remembered(repeats, "sum", mode.shape_env.create_unbacked_size)
    return meta_strided(mode, repeats, (output_size,), (1,), repeats.dtype)


# By operator, what it gives where its shape or value depends on elements and sizes may be symbols.
UNBACKED: dict[str, Callable[..., Any]] = {
    "aten.nonzero.default": fake_nonzero,
    "aten.masked_select.default": fake_masked_select,
    "aten._local_scalar_dense.default": fake_item,
    "aten.index.Tensor": fake_index,
    "aten.repeat_interleave.Tensor": fake_repeat_interleave,
    "aten._unique2.default": lambda mode, self, *args, **kw: fake_unique(mode, self, func="aten._unique2.default"),
    "aten.unique_consecutive.default": lambda mode, self, inverse=False, counts=False, dim=None: fake_unique(
        mode, self, func="aten.unique_consecutive.default", dim=dim
    ),
    "aten.unique_dim.default": lambda mode, self, dim, *args, **kw: fake_unique(
        mode, self, func="aten.unique_dim.default", dim=dim
    ),
}


def is_fake(value: Any) -> bool:
    """Returns whether a tensor is fake, or a wrapper of nothing but fakes."""
    if is_traceable_wrapper_subclass(value):
        names = value.__tensor_flatten__()[0]
        return all(is_fake(getattr(value, name)) for name in names)
    return isinstance(value, FakeTensor)


class TensorMemo(dict[int, tuple[Any, Any]]):
    """Tensor -> its fake, as long as both live."""

    def remember(self, tensor: rd.Tensor, fake: FakeTensor) -> None:
        key, mine = id(tensor), weakref.ref(self)

        def gone(_: Any) -> None:
            memo = mine()
            if memo is not None:
                memo.pop(key, None)

        self[key] = weakref.ref(tensor, gone), weakref.ref(fake, gone)

    def get(self, tensor: Any, default: Any = None) -> Any:
        known = super().get(id(tensor))
        return known[1]() if known is not None and known[0]() is tensor else default

    def __contains__(self, tensor: object) -> bool:
        return self.get(tensor) is not None


class FakeTensorConverter:
    """Table of the fakes that were made of tensors, and the memory on the meta device that stands for a storage."""

    def __init__(self, **ignored: Any) -> None:
        self.tensor_memo = TensorMemo()
        self.storage_memo: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self.meta_converter = self

    def storage_like(self, tensor: rd.Tensor, elem: rd.Tensor) -> Any:
        """The storage that stands for a tensor's: the same for all that share it."""
        found = self.storage_memo.get(tensor._storage)
        if found is None:
            real = tensor._storage
            made = (
                elem._storage if isinstance(elem.numel(), SymInt) else UntypedStorage.without_data(real.nbytes(), META)
            )
            found = self.storage_memo[real] = made
        return found

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: rd.Tensor, **options: Any) -> FakeTensor:
        former, fake_mode.fake_tensor_converter = fake_mode.fake_tensor_converter, self
        try:
            return fake_mode.from_tensor(t, **options)
        finally:
            fake_mode.fake_tensor_converter = former

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: rd.Tensor, device: Any, **ignored: Any) -> FakeTensor:
        fake = self.tensor_memo.get(t)
        if fake is None:
            fake = FakeTensor(fake_mode, t, device)
            self.tensor_memo.remember(t, fake)
        return fake


class FakeCopyMode(TorchFunctionMode):
    """A region in which `copy.deepcopy` of a tensor, or of what holds some, gives fakes of a mode."""

    def __init__(self, fake_mode: FakeTensorMode) -> None:
        self.fake_mode = fake_mode

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is rd.Tensor.clone:
            return func(self.fake_mode.from_tensor(args[0]), **(kwargs or {}))
        if func is not rd.Tensor.__deepcopy__:
            with rd._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        tensor, memo = args
        if id(tensor) not in memo:
            memo[id(tensor)] = self.fake_mode.from_tensor(tensor)
        return memo[id(tensor)]


def __getattr__(name: str) -> Any:
    if name == "_like_tensor_constructors":
        return tuple(op for op in operators() if op.packet_name.endswith("_like"))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
