"""A user's autograd.Function under transforms: what `apply` means for each kind of level.

`forward` runs once, outside of all levels, on plain tensors. Each level on the way out does with the outputs what it is
there for: a GradLevel records them with the user's backward, a JvpLevel asks the user's jvp for their tangents, and
vmap (dispatch/transforms/vmap_level.py) asks the user's vmap, or maps forward and backward themselves. So what
forward and backward share must be set up for every level anew: by a `setup_context` of its own, apart from `forward`.
Where `forward` takes the context, `split` derives one.

Read next: grad_level.py, jvp_level.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import STATE, ops, wants_gradient, within
from redispatch.dispatch.pytree import tree_map, tree_map_only
from redispatch.dispatch.tensor import Tensor, dtypes
from redispatch.dispatch.tensor.wrapped import is_wrapped

from .function import SPLIT, Function, FunctionCtx, is_among, tie_outputs, wrong_count


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """An output with each tensor changed: a tensor, or a tuple."""
    if isinstance(value, tuple):
        return tuple(mapped(one, change) for one in value)
    return change(value) if isinstance(value, Tensor) else value


def apply_recorded(level: Any, cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Runs `apply` under a GradLevel: calls it outside, and records it here."""
    lifted = tuple(level.lift(value) if isinstance(value, Tensor) else value for value in args)
    with within(STATE.get().outer()):
        values = tuple(mapped(value, level.unwrap) for value in lifted)
        output = cls.apply(*values)
    given = {id(value): tensor for value, tensor in zip(values, lifted, strict=True) if isinstance(value, Tensor)}
    wrapped = mapped(output, lambda one: given[id(one)] if id(one) in given else level.wrap(one))
    ctx = cls._context_class(tuple(wants_gradient(value) for value in lifted))
    state = STATE.get()
    node = cls._node_class(ctx, lifted) if state.grad_enabled and True in ctx.needs_input_grad else None
    with within(state.with_grad(False)):
        cls.setup_context(ctx, lifted, wrapped)
        result = tie_outputs(node, ctx, lifted, wrapped)
    if node is not None and ctx.to_save:
        node.save(ctx.to_save)
    return result


def apply_with_tangents(level: Any, cls: type[Function], args: tuple[Any, ...]) -> Any:
    """Runs `apply` under a JvpLevel: calls it outside, and takes its tangents from the user's jvp."""
    values = tuple(mapped(value, level.unwrap) for value in args)
    with within(STATE.get().outer()):
        tangents = [level.tangent_of(value) if isinstance(value, Tensor) else None for value in args]
        output = cls.apply(*values)
        moved = tangents_by_user(cls, values, tangents, output)
    return paired(output, moved, level.attach)


def tangents_by_user(cls: type[Function], values: tuple[Any, ...], tangents: list[Any], output: Any) -> Any:
    """The tangents of the outputs, as the Function's `jvp` says; None for all where no input has one."""
    if all(tangent is None for tangent in tangents):
        return None
    ctx = cls._context_class(tuple(wants_gradient(value) for value in values))
    cls.setup_context(ctx, values, output)
    return asked_for_tangents(cls, ctx, values, tangents, output)


def asked_for_tangents(
    cls: type[Function], ctx: FunctionCtx, values: tuple[Any, ...], tangents: list[Any], output: Any
) -> Any:
    """Returns the answer of the Function's `jvp`; zeros stand for missing tangents of inputs that could have one,
    unless `ctx` forbids them."""
    if ctx.materialize_grads:
        pairs = zip(values, tangents, strict=True)
        tangents = [ops.aten.zeros_like.default(value) if lacks(value, one) else one for value, one in pairs]
    kept, node = ctx.to_save, ctx._node
    ctx.to_save, ctx._node = getattr(ctx, "saved_for_forward", ()), lambda: None
    try:
        moved = cls.jvp(ctx, *tangents)
    finally:
        ctx.to_save, ctx._node = kept, node
    expected = len(output) if isinstance(output, tuple) else 1
    given = len(moved) if isinstance(moved, tuple) else 1
    if expected != given:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {expected} but got {given})"
        )
    outputs, found = (one if isinstance(one, tuple) else (one,) for one in (output, moved))
    for index, (one, tangent) in enumerate(zip(outputs, found, strict=True)):
        if tangent is None or not isinstance(one, Tensor):
            continue
        marked = index in ctx._without_gradient or is_among(one, ctx.non_differentiable)
        check_tangent(index, one, tangent, not marked and one._dtype.category >= dtypes.FLOATING)
        if one._view is not None and not is_wrapped(tangent) and not is_among(one, values):
            check_view(one, tangent, values, tangents)
    return moved


def lacks(value: Any, tangent: Any) -> bool:
    """Whether an input has no tangent and could have one."""
    return tangent is None and isinstance(value, Tensor) and value._dtype.category >= dtypes.FLOATING


def check_tangent(index: int, output: Any, tangent: Any, differentiable: bool) -> None:
    """RuntimeError for what cannot be the tangent of an output."""
    if not differentiable:
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {index}, but  the corresponding forward output is not a "
            "differentiable Tensor.You should return None at that position instead."
        )
    if not isinstance(tangent, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {index}.")
    check_size(output, tangent)


def check_view(output: Any, tangent: Any, values: tuple[Any, ...], tangents: list[Any]) -> None:
    """RuntimeError where a view of an argument has a tangent that is not the same view of that argument's."""
    if tangent._view is None:
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
        )
    base = output._view.base
    for value, given in zip(values, tangents, strict=True):
        if isinstance(value, Tensor) and given is not None and is_among(base, (value, base_of(value))):
            if base_of(tangent) is not (given if given._view is None else base_of(given)):
                which = "the given grad input" if given._view is None else "the same base as the given grad input"
                raise RuntimeError(
                    f"A custom Function is returning a view but the jvp is not returning a view of {which}."
                )
            return


def base_of(tensor: Any) -> Any:
    """Returns the tensor that a view shows a part of; None for what is no view."""
    return None if tensor._view is None else tensor._view.base


def check_size(primal: Any, tangent: Any) -> None:
    """RuntimeError for a tangent of another shape."""
    if tangent._shape != primal._shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal._shape)} while the given forward gradient is of size "
            f"{list(tangent._shape)}."
        )


def paired(output: Any, moved: Any, attach: Callable[[Any, Any], Any]) -> Any:
    """Each output with its tangent attached."""
    if isinstance(output, tuple):
        parts = moved if isinstance(moved, tuple) else (moved,) * len(output) if moved is None else (moved,)
        return tuple(paired(one, part, attach) for one, part in zip(output, parts, strict=True))
    if isinstance(moved, tuple):
        (moved,) = moved
    return attach(output, moved) if isinstance(output, Tensor) else output


# Note [Functions whose forward takes the context]
# `forward(ctx, x)` mixes what runs once with what each level has to set up: PyTorch refuses such a Function under a
# transform. Here it is split. Forward runs once, with a context of its own. What it left there is read afterwards: a
# tensor that is an argument or an output is named by its place, and any other becomes one more output, without a
# gradient, as intermediate results have none in PyTorch either. So each level can be given a context with tensors of
# its own in the same places.


class Placed:
    """A tensor that a context holds: the number of an argument, or else of an output."""

    def __init__(self, of_inputs: bool, number: int) -> None:
        self.of_inputs, self.number = of_inputs, number


class Kept:
    """The contents of the context after one call of `forward`, with places for tensors.

    outputs: how many tensors and other values forward returned; several: whether as a tuple.
    """

    def __init__(self, ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        self.several = isinstance(output, tuple)
        self.values: list[Any] = list(output) if self.several else [output]
        self.outputs = len(self.values)
        left = {name: value for name, value in vars(ctx).items() if name not in ("needs_input_grad", "_node")}
        self.fields = tree_map_only(Tensor, lambda one: self.placed(one, inputs), left)

    def placed(self, tensor: Any, inputs: tuple[Any, ...]) -> Placed:
        """The place of a tensor; what has none becomes one more output."""
        for of_inputs, values in ((True, inputs), (False, self.values)):
            for number, value in enumerate(values):
                if value is tensor:
                    return Placed(of_inputs, number)
        self.values.append(tensor)
        return Placed(False, len(self.values) - 1)

    def set_up(self, ctx: FunctionCtx, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        """Gives the context of one level what forward left in its own."""

        def here(value: Any) -> Any:
            return (inputs if value.of_inputs else output)[value.number] if isinstance(value, Placed) else value

        vars(ctx).update(tree_map(here, self.fields))
        ctx.non_differentiable = (*ctx.non_differentiable, *output[self.outputs : -1])


def apply_split(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs `apply`, under a transform, of a Function whose forward takes the context: the note above."""
    apart = vars(cls).get("_apart")
    if apart is None:
        apart = cls._apart = split(cls)  # type: ignore[attr-defined]  # remembered with the class
    *values, kept = apart.apply(tuple(kwargs), *args, *kwargs.values())
    values = values[: kept.outputs]
    return tuple(values) if kept.several else values[0]


def split(cls: type[Function]) -> type[Function]:
    """A Function that does what `cls` does, with a `setup_context`: the note above.

    Its arguments: the names of those that are given by keyword, those by position, and those by keyword.
    """

    def forward(names: tuple[str, ...], *inputs: Any) -> Any:
        needs = tuple(isinstance(one, Tensor) and one._dtype.category >= dtypes.FLOATING for one in inputs)
        count = len(inputs) - len(names)
        ctx = cls._context_class(needs[:count])  # which level wants which is not known yet
        output = cls.forward(ctx, *inputs[:count], **dict(zip(names, inputs[count:], strict=True)))
        kept = Kept(ctx, inputs, output)
        return (*kept.values, kept)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        output[-1].set_up(ctx, inputs[1:], output)
        ctx.needs_input_grad = ctx.needs_input_grad[1 : len(inputs) - len(inputs[0])]
        ctx._beyond = (None,) * len(inputs[0]), (None,) * (len(output) - output[-1].outputs)

    def backward(ctx: Any, *gradients: Any) -> Any:
        by_keyword, added = ctx._beyond
        found = cls._backward(ctx, *gradients[: len(gradients) - len(added)])
        results = list(found) if isinstance(found, tuple | list) else [found]
        while len(results) > len(ctx.needs_input_grad) and results[-1] is None:
            results.pop()
        if len(results) != len(ctx.needs_input_grad):
            raise wrong_count(f"{cls.__name__}Backward", len(ctx.needs_input_grad), len(results))
        return (None, *results, *by_keyword)

    def jvp(ctx: Any, *tangents: Any) -> Any:
        moved = cls.jvp(ctx, *tangents[1 : 1 + len(ctx.needs_input_grad)])
        return (*(moved if isinstance(moved, tuple) else (moved,)), *ctx._beyond[1])

    def vmap(info: Any, in_dims: tuple[Any, ...], names: tuple[str, ...], *inputs: Any) -> Any:
        output, dims = cls.vmap(info, in_dims[1:], *inputs)
        kept = Kept(cls._context_class(()), (), output)
        return (*kept.values, kept), ((*dims, None) if isinstance(dims, tuple) else dims)

    parts: dict[str, Any] = {each.__name__: staticmethod(each) for each in (forward, setup_context, backward, jvp)}
    parts |= {"generate_vmap_rule": True} if cls.vmap is Function.vmap else {"vmap": staticmethod(vmap)}
    return type(cls.__name__, (Function,), parts)


SPLIT.fill(apply_split)
