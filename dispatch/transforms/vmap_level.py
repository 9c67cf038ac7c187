"""VmapLevel: what `vmap` is while it is at work.

A wrapper looks like one example; its value holds all of them, along one dimension. A call means: the operator, for each
example. A batching rule says how to do that for all at once, by calls outside on the values (batching/). Operators that
are written in others are taken apart first, and what has no rule is called once for each example.

Source: PyTorch's functorch (VmapInterpreterPtr). Read next: kernels/batching/__init__.py, vmap.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple, cast

from redispatch.dispatch import STATE, OpOverload, Tag, TensorBase, call, ops, unbind, within
from redispatch.dispatch.autograd import Function
from redispatch.dispatch.autograd.forward import composite_kernel
from redispatch.dispatch.autograd.function_levels import mapped
from redispatch.dispatch.layers.transforms import BATCHING, ByUser, Level, each_tensor, result_of
from redispatch.dispatch.pytree import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from redispatch.dispatch.specialiser.annotations import inline
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import Wrapped, look_like_values, without_dead, wrapped

from .batched import RULES, Decomposition, is_batched, tensors_in

# A user's autograd.Function under vmap: by the rule that the user wrote, or by mapping forward and backward -----------
#
#     @staticmethod
#     def vmap(info, in_dims, x): ...         returns (output, out_dims); info has `batch_size` and `randomness`
#
# With `generate_vmap_rule = True` there is nothing to write: a Function is made whose forward, setup_context and
# backward are those of the user's, each under a vmap of its own; what is saved is batched as the forward left it.


class VmapInfo(NamedTuple):
    """The information that a user's vmap gets."""

    batch_size: int
    randomness: str


def apply_mapped(level: Any, cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Runs `apply` under a VmapLevel. RuntimeError where the Function has no rule, or two."""
    by_user = None if cls.vmap is Function.vmap else cls.vmap
    if cls.generate_vmap_rule and by_user is not None:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
        )
    if not cls.generate_vmap_rule and by_user is None:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement "
            "the vmap staticmethod or set generate_vmap_rule=True. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    values = tuple(mapped(value, level.unwrap) for value in args)
    dims = dims_in(level, args)
    with within(STATE.get().outer()):
        if all(dim is None for dim in dims):
            return cls.apply(*values)
        if by_user is not None:
            output, out_dims = two_returns(by_user(VmapInfo(level.size, level.randomness), dims, *values))
        else:
            output, out_dims = generated(level, cls, dims, values)
    leaves, spec = tree_flatten(output)
    places = _broadcast_to_and_flatten(out_dims, spec)
    if places is None:
        raise RuntimeError(
            f"The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_structure(out_dims)} but output has structure {spec}. For more details, please see "
            "https://pytorch.org/docs/main/notes/extending.func.html"
        )
    written = {id(value): arg for value, arg in zip(values, args, strict=True) if isinstance(value, Tensor)}
    wrappers = wrap_each(level, leaves, places)
    return tree_unflatten([written.get(id(leaf), one) for leaf, one in zip(leaves, wrappers, strict=True)], spec)


def dims_in(level: Any, values: Iterable[Any]) -> tuple[int | None, ...]:
    """The dimension along which a level has batched each of the values; None for what it has not."""
    return tuple(level.dims_of(value) if isinstance(value, Tensor) else None for value in values)


def wrap_each(level: Any, values: Iterable[Any], dims: Iterable[int | None]) -> tuple[Any, ...]:
    """The values, those with a dimension as tensors that a level has batched along it."""
    return tuple(level.wrap(value, dim) for value, dim in zip(values, dims, strict=True))


def two_returns(found: Any) -> tuple[Any, Any]:
    """(output, out_dims) as a user's vmap returned them. RuntimeError where it returned anything else."""
    if isinstance(found, tuple) and len(found) == 2:
        return found
    raise RuntimeError(
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
        f"with the output. Got {f'{len(found)} returns' if isinstance(found, tuple) else f'a {type(found)}'} instead"
    )


def generated(level: Any, cls: type[Function], in_dims: tuple[Any, ...], values: tuple[Any, ...]) -> tuple[Any, Any]:
    """(output, out_dims) by a Function whose parts are those of `cls`, each mapped."""
    size, randomness, make = level.size, level.randomness, type(level)
    known: dict[str, Any] = {}

    class Mapped(Function):
        generate_vmap_rule = True  # under one more vmap, the same again

        @staticmethod
        def forward(*whole: Any) -> Any:
            with make(size, randomness) as inner:
                output = cls.forward(*wrap_each(inner, whole, in_dims))
                leaves, known["spec"] = tree_flatten(output)
                known["dims"] = list(dims_in(inner, leaves))
                return tree_unflatten([mapped(leaf, inner.unwrap) for leaf in leaves], known["spec"])

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            with make(size, randomness) as inner:
                ctx.inner = cls._context_class(ctx.needs_input_grad)
                example = tree_unflatten(wrap_each(inner, tree_flatten(output)[0], known["dims"]), known["spec"])
                given = wrap_each(inner, inputs, in_dims)
                cls.setup_context(ctx.inner, given, example)
                ctx.set_materialize_grads(ctx.inner.materialize_grads)
                ctx.mark_non_differentiable(*(mapped(one, inner.unwrap) for one in ctx.inner.non_differentiable))
                ctx.mark_dirty(*(mapped(one, inner.unwrap) for one in ctx.inner.dirty_tensors))
                kept = ctx.inner.to_save
                for_jvp = getattr(ctx.inner, "saved_for_forward", kept)
                ctx.saved_dims, ctx.dims_for_jvp = dims_in(inner, kept), dims_in(inner, for_jvp)
                ctx.save_for_backward(*(mapped(one, inner.unwrap) for one in kept))
                ctx.save_for_forward(*(mapped(one, inner.unwrap) for one in for_jvp))
                ctx.out_dims, ctx.shapes = list(known["dims"]), [getattr(value, "shape", None) for value in given]
                ctx.inner.to_save = ()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with make(size, randomness) as inner:
                ctx.inner.to_save = wrap_each(inner, ctx.saved_tensors, ctx.saved_dims)
                found = cls._backward(ctx.inner, *wrap_each(inner, grads, ctx.out_dims))
                found = found if isinstance(found, tuple) else (found,)
                places = zip(found, in_dims, ctx.shapes, strict=False)
                return tuple(None if one is None else placed(inner, one, dim, shape) for one, dim, shape in places)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with make(size, randomness) as inner:
                ctx.inner.to_save = wrap_each(inner, ctx.saved_tensors, ctx.dims_for_jvp)
                found = cls.jvp(ctx.inner, *wrap_each(inner, tangents, in_dims))
                several = found if isinstance(found, tuple) else (found,)
                pairs = zip(several, ctx.out_dims, strict=True)
                moved = [None if one is None else inner.batch_of(one, dim or 0) for one, dim in pairs]
                return tuple(moved) if isinstance(found, tuple) else moved[0]

    Mapped.__name__ = f"Vmapped{cls.__name__}"
    output = Mapped.apply(*values)
    return output, tree_unflatten(known["dims"], known["spec"])


def placed(inner: Any, gradient: Any, dim: int | None, shape: Any) -> Any:
    """A gradient as its input lies: of an example's shape, and batched along the same dimension or summed over the
    batch."""
    whole = inner.batch_of(gradient if gradient.shape == shape else gradient.sum_to_size(shape), 0)
    with within(STATE.get().outer()):
        return whole.sum(0) if dim is None else whole.movedim(0, dim)


NO_VIEWS = ("resize_", "resize_as_", "set_", "detach_")  # they change how a tensor looks, and are no views of it
RANDOMNESS = ("error", "different", "same")


class VmapLevel(Level):
    """`vmap` at work. size: of the batch; randomness: what random operators do, one of the words above."""

    def __init__(self, size: int, randomness: str) -> None:
        self.size, self.randomness = size, randomness

    @inline
    def process(self, op: OpOverload, stack: list[Any]) -> Any:
        rule = RULES().of_rows(op)
        if rule is None or not self.holds_rows(tensors_in(stack)):
            return self.process_slow(op, stack)
        values: list[Any] = list(stack)
        for place, one in enumerate(stack):
            if isinstance(one, TensorBase):
                values[place] = cast(TensorBase, cast(Any, one)._value)
        with within(STATE.get().outer()):
            result = rule(op, values)
        return wrapped(result, self, 0)

    @inline
    def holds_rows(self, tensors: list[Any]) -> bool:
        """Whether each of these tensors is an example, which is a row of its batch; all with as many dimensions."""
        return bool(tensors) and all(
            type(one) is Wrapped and one._level is self and one._bdim == 0 and len(one._shape) == len(tensors[0]._shape)
            for one in tensors
        )

    def process_slow(self, op: OpOverload, stack: list[Any]) -> Any:
        stack = each_tensor(op.schema, stack, without_dead)
        values = each_tensor(op.schema, stack, self.unwrap)
        dims = [self.dims_of(value) for value in stack]
        if RULES().draws(op, values) and composite_kernel(op) is None:
            return self.handed_out(op, stack, self.outside(lambda: RULES().draw(op, values, dims, self)))
        if not any(map(is_batched, dims)):
            kernel = composite_kernel(op) if Tag.nondeterministic_seeded in op.tags else None
            if kernel is None:
                return self.outside(lambda: call(op, values))
            if self.randomness == "different" and not op.schema.is_mutable:  # it draws for the examples of its argument
                stack[0] = self.wrap(values[0].expand((self.size, *values[0].shape)), 0)
            return kernel.boxed(op, 0, stack)
        if Tag.inplace_view in op.tags and dims[0] is not None and op._opname not in NO_VIEWS:
            return self.turned(op, stack, values, dims)
        rule: Any = BATCHING.get(op)
        if rule is None:
            kernel = composite_kernel(op)
            if kernel is not None:
                return kernel.boxed(op, 0, stack)
            rule = RULES().of(op)
        if isinstance(rule, Decomposition):
            result = rule.function(op, stack)
            if result is not NotImplemented:
                return result
            rule = rule.otherwise
        if isinstance(rule, ByUser):
            return self.handed_out(op, stack, self.by_user(rule, op, values, dims))
        if op.schema.mutable_positions and not op.schema.is_out:
            RULES().check_writes(op, values, dims)
        result, dims = self.outside(lambda: rule(op, values, dims, self.size))
        for value, tensor in zip(values, stack, strict=True):
            if result is value and isinstance(value, Tensor):  # an operator that may give back what it was given
                return tensor
        return self.handed_out(op, stack, (result, dims))

    def by_user(self, rule: ByUser, op: OpOverload, values: list[Any], dims: list[Any]) -> tuple[Any, Any]:
        """(result, dims of the result) by a rule that a user registered. RuntimeError where they do not fit."""
        args, kwargs = unbind(op.schema, values)
        info, in_dims = VmapInfo(self.size, self.randomness), tuple(dims[: len(args)])
        found = self.outside(lambda: rule.function(info, in_dims, *args, **kwargs))
        result, out_dims = two_returns(found)
        leaves, spec = tree_flatten(result)
        if _broadcast_to_and_flatten(out_dims, spec) is None:
            raise RuntimeError(f"the batching rule of {op} returned out_dims {out_dims} for {len(leaves)} results")
        return result, out_dims

    def apply_function(self, cls: type[Function], args: tuple[Any, ...]) -> Any:
        return apply_mapped(self, cls, args)

    def outside(self, run: Any) -> Any:
        with within(STATE.get().outer()):
            return run()

    def turned(self, op: OpOverload, stack: list[Any], values: list[Any], dims: list[Any]) -> Any:
        """An operator that changes how its argument looks, in place: the wrapper gets another view of the batch."""
        overload = "int" if op._opname == "transpose_" else op._overloadname
        view = getattr(getattr(ops.aten, op._opname.removesuffix("_")), overload)
        written = stack[0]
        rule: Any = BATCHING.get(view) or RULES().of(view)
        written._value, written._bdim = self.outside(lambda: rule(view, values, dims, self.size))
        look_like_values(written)
        return written

    def handed_out(self, op: OpOverload, stack: list[Any], found: tuple[Any, Any]) -> Any:
        """The result in wrappers; what was written is the argument itself."""
        result, dims = found
        for position in op.schema.mutable_positions:
            look_like_values(stack[position])
        if isinstance(result, tuple | list) and len(op.schema.returns) > 1:
            every = dims if isinstance(dims, tuple | list) else [dims] * len(result)
            return tuple(
                result_of(op.schema, stack, index, one, self.wrapping(dim))
                for index, (one, dim) in enumerate(zip(result, every, strict=True))
            )
        return result_of(op.schema, stack, 0, result, self.wrapping(dims))

    def wrapping(self, dims: Any) -> Callable[[Any], Any]:
        """Returns the function that wraps the tensors of one result: a list of them may have a dim for each."""
        if isinstance(dims, tuple | list):
            each = iter(dims)
            return lambda value: self.wrap(value, next(each))
        return partial(self.wrap, dim=dims)

    def dims_of(self, value: Any) -> Any:
        """Along which dimension an argument is batched here; None: it is not."""
        if isinstance(value, list):
            return [self.dims_of(item) for item in value]
        return value._bdim if getattr(value, "_level", None) is self else None

    def wrap(self, value: Any, dim: int | None = None) -> Any:
        return value if dim is None or not isinstance(value, Tensor) else wrapped(value, self, bdim=dim)

    def unwrap(self, tensor: Any) -> Any:
        return tensor._value if getattr(tensor, "_level", None) is self else without_dead(tensor)

    def batch_of(self, tensor: Tensor, dim: int) -> Tensor:
        """The whole batch behind a tensor of this level, along `dim`; what is not batched, repeated."""
        own = self.dims_of(tensor)
        with within(STATE.get().outer()):
            value = self.unwrap(tensor)
            if own is None:
                return value.expand((self.size, *value.shape)).movedim(0, dim)
            return value if own == dim else value.movedim(own, dim)
