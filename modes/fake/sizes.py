"""Sizes of fake tensors as symbols: those of what comes in, and those of results that depend on elements.

Read next: dispatch/symbolic.py, what a symbol is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redispatch as rd
from redispatch.dispatch.symbolic import ShapeEnv, SymFloat, SymInt, wrapped
from redispatch.utils._python_dispatch import _disable_current_modes

from .tensor import META, DataDependentOutputException, DynamicOutputShapeException, FakeTensor

FakeTensorMode = Any  # the class in ../fake_tensor.py, which imports this file


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

    def symbol(dim: int, size: int, how: str) -> Any:
        if how == "UNBACKED":
            return env.create_unbacked_size()
        duck = None if how == "DUCK" else False  # the environment's choice
        return wrapped(env, env.create_symbol(size, f"{name}.size()[{dim}]", duck=duck))

    faces = enumerate(zip(tensor.shape, wanted, strict=True))
    sizes = [size if how == "STATIC" else symbol(dim, size, how) for dim, (size, how) in faces]
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
        how: str = context.dynamic_sizes[dim].name.replace("SIZE_LIKE_", "")
        return how if how in ("STATIC", "DYNAMIC", "UNBACKED") else "DUCK"
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


def fake_ctc_loss(mode: FakeTensorMode, log_probs: FakeTensor, *args: Any, **kwargs: Any) -> Any:
    """The losses, and the paths that the backward pass needs: two steps for a label of the longest target, and one."""
    env = mode.shape_env
    assert env is not None
    times, batch, _ = log_probs.shape
    width = 2 * env.create_unbacked_size() + 1
    losses = meta_strided(mode, log_probs, (batch,), (1,), log_probs.dtype)
    return losses, meta_strided(mode, log_probs, (batch, times, width), (times * width, width, 1), log_probs.dtype)


# By operator, what it gives where its shape or value depends on elements and sizes may be symbols.
UNBACKED: dict[str, Callable[..., Any]] = {
    "aten.nonzero.default": fake_nonzero,
    "aten.masked_select.default": fake_masked_select,
    "aten._local_scalar_dense.default": fake_item,
    "aten._ctc_loss.Tensor": fake_ctc_loss,
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
