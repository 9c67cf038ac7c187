"""A user's autograd.Function under vmap: by the rule that the user wrote, or by mapping forward and backward.

    @staticmethod
    def vmap(info, in_dims, x): ...         returns (output, out_dims); info has `batch_size` and `randomness`

With `generate_vmap_rule = True` there is nothing to write: a Function is made whose forward, setup_context and backward
are those of the user's, each under a vmap of its own; what is saved is batched as the forward left it.

Read next: vmap_level.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from redispatch.dispatch import STATE, within
from redispatch.dispatch.autograd import Function
from redispatch.dispatch.autograd.function_levels import check_is_split, mapped
from redispatch.dispatch.pytree import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from redispatch.dispatch.tensor import Tensor


class VmapInfo(NamedTuple):
    """The information that a user's vmap gets."""

    batch_size: int
    randomness: str


def apply_mapped(level: Any, cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Runs `apply` under a VmapLevel. RuntimeError where the Function has no rule, or two."""
    check_is_split(cls)
    by_user = getattr(cls, "vmap", None)
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
    dims = tuple(level.dims_of(value) if isinstance(value, Tensor) else None for value in args)
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
    return tree_unflatten([level.wrap(leaf, dim) for leaf, dim in zip(leaves, places, strict=True)], spec)


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
                output = cls.forward(*(inner.wrap(value, dim) for value, dim in zip(whole, in_dims, strict=True)))
                leaves, known["spec"] = tree_flatten(output)
                known["dims"] = [inner.dims_of(leaf) if isinstance(leaf, Tensor) else None for leaf in leaves]
                return tree_unflatten([mapped(leaf, inner.unwrap) for leaf in leaves], known["spec"])

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            with make(size, randomness) as inner:
                ctx.inner = cls._context_class(ctx.needs_input_grad)
                wrapped = tuple(inner.wrap(value, dim) for value, dim in zip(inputs, in_dims, strict=True))
                leaves = tree_flatten(output)[0]
                examples = [inner.wrap(leaf, dim) for leaf, dim in zip(leaves, known["dims"], strict=True)]
                cls.setup_context(ctx.inner, wrapped, tree_unflatten(examples, known["spec"]))
                ctx.set_materialize_grads(ctx.inner.materialize_grads)
                kept = ctx.inner.to_save
                for_jvp = getattr(ctx.inner, "saved_for_forward", kept)
                ctx.saved_dims, ctx.dims_for_jvp = (
                    [inner.dims_of(one) if isinstance(one, Tensor) else None for one in each]
                    for each in (kept, for_jvp)
                )
                ctx.save_for_backward(*(mapped(one, inner.unwrap) for one in kept))
                ctx.save_for_forward(*(mapped(one, inner.unwrap) for one in for_jvp))
                ctx.out_dims, ctx.shapes = list(known["dims"]), [getattr(value, "shape", None) for value in inputs]
                ctx.inner.to_save = ()

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            with make(size, randomness) as inner:
                saved = zip(ctx.saved_tensors, ctx.saved_dims, strict=True)
                ctx.inner.to_save = tuple(one if one is None else inner.wrap(one, dim) for one, dim in saved)
                given = zip(grads, ctx.out_dims, strict=True)
                found = cls._backward(ctx.inner, *(one if one is None else inner.wrap(one, dim) for one, dim in given))
                found = found if isinstance(found, tuple) else (found,)
                return tuple(
                    None if one is None else placed(inner, one, dim) for one, dim in zip(found, in_dims, strict=False)
                )

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            with make(size, randomness) as inner:
                saved = zip(ctx.saved_tensors, ctx.dims_for_jvp, strict=True)
                ctx.inner.to_save = tuple(one if one is None else inner.wrap(one, dim) for one, dim in saved)
                given = zip(tangents, in_dims, strict=True)
                found = cls.jvp(ctx.inner, *(one if one is None else inner.wrap(one, dim) for one, dim in given))
                several = found if isinstance(found, tuple) else (found,)
                pairs = zip(several, ctx.out_dims, strict=True)
                moved = [None if one is None else inner.batch_of(one, dim or 0) for one, dim in pairs]
                return tuple(moved) if isinstance(found, tuple) else moved[0]

    Mapped.__name__ = f"Vmapped{cls.__name__}"
    output = Mapped.apply(*values)
    return output, tree_unflatten(known["dims"], known["spec"])


def placed(inner: Any, gradient: Any, dim: int | None) -> Any:
    """A gradient as its input lies: batched along the same dimension, or summed over the batch."""
    whole = inner.batch_of(gradient, 0)
    with within(STATE.get().outer()):
        return whole.sum(0) if dim is None else whole.movedim(0, dim)
