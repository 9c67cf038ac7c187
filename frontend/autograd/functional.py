"""Derivatives of a function at a point: `redispatch.autograd.functional`, made of `grad` alone.

These are the older faces: they take and give plain tensors, call the function as it is, and `create_graph` says
whether the result can be differentiated again. `redispatch.func` has the same as functions of functions, which nest.

Read next: dispatch/transforms/reverse.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import STATE, ops, within
from redispatch.dispatch.autograd.api import grad
from redispatch.dispatch.autograd.forward_ad import dual_level, make_dual, unpack_dual
from redispatch.dispatch.autograd.node import BATCHED
from redispatch.dispatch.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]


def as_tuple(value: Any, argument: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """(whether it was a tuple, the tensors). TypeError for anything else."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    what = f"{argument} of the user-provided function" if argument == "outputs" else argument
    for index, one in enumerate(values):
        if not isinstance(one, Tensor):
            given = f"the value at index {index} has type" if is_tuple else f"the given {what} has type"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {given} {type(one)}."
            )
    return is_tuple, values


def separate(inputs: Sequence[Any], create_graph: bool) -> tuple[Any, ...]:
    """The inputs as the function gets them: of which gradients are wanted, whatever they are part of."""
    return tuple(
        (x.view_as(x) if x.requires_grad else x.detach().requires_grad_())
        if create_graph
        else x.detach().requires_grad_()
        for x in inputs
    )


def evaluated(func: Function, inputs: Any, create_graph: bool, name: str) -> tuple[Any, ...]:
    """((inputs are a tuple, inputs), (outputs are a tuple, outputs)) of a recorded call."""
    given = as_tuple(inputs, "inputs", name)
    own = separate(given[1], create_graph)
    return (given[0], own), as_tuple(func(*own), "outputs", name)


def direction(v: Any, others: Sequence[Any], many: bool, name: str) -> tuple[Any, ...]:
    """A vector to multiply with, checked against the tensors that it belongs to; ones for a single number."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            which = "inputs" if name in ("jvp", "hvp", "vhp") else "outputs"
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single "
                "element."
                if which == "outputs"
                else "The vector v can only be None if the input to the user-provided function is a single Tensor with "
                "a single element."
            )
        return (others[0].new_ones(others[0].shape),)
    _, values = as_tuple(v, "v", name)
    if len(values) != len(others):
        if many:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(values)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for index, (value, other) in enumerate(zip(values, others, strict=True)):
        if value.shape != other.shape:
            prefix = f"Entry {index} in " if len(values) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {other.shape} but got {value.shape}.")
    return values


def tidy(values: Any, is_tuple: bool, create_graph: bool) -> Any:
    """The results as they are handed out: with history only if it was asked for."""
    values = tuple(one if create_graph else one.detach() for one in values)
    return values if is_tuple else values[0]


def gradients(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    v: Sequence[Any] | None,
    create_graph: bool,
    strict: bool,
    what: str = "The output",
    derivative: str = "jacobian",
) -> tuple[Any, ...]:
    """The gradients, zeros where there are none.

    Errors: RuntimeError, if `strict`, where there are none of what `outputs` are, for the user `what`; or, with
    `create_graph`, where they do not depend on the inputs in turn, and so the `derivative`, if named, is constant.
    """
    recorded = [(y, None if v is None else v[i]) for i, y in enumerate(outputs) if y.requires_grad]
    if strict and len(recorded) < len(outputs):
        raise unrelated(next(i for i, y in enumerate(outputs) if not y.requires_grad))
    found: tuple[Any, ...] = (None,) * len(inputs)
    if recorded:
        found = grad(
            [y for y, _ in recorded],
            inputs,
            None if v is None else [seed for _, seed in recorded],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    for index, one in enumerate(found):
        if one is None and strict:
            raise RuntimeError(f"{what} of the user-provided function is independent of input {index}. {STRICT}")
        if strict and create_graph and derivative and not one.requires_grad:
            raise constant(derivative, index)
    return tuple(x.new_zeros(x.shape) if g is None else g for g, x in zip(found, inputs, strict=True))


STRICT = "This is not allowed in strict mode."


def check_second_order(jacobian: Sequence[Any]) -> None:
    """RuntimeError where the gradient of some input does not depend on the inputs."""
    for index, one in enumerate(jacobian):
        if not one.requires_grad:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect to "
                f"input {index} is independent of the input. {STRICT} You should ensure that your function is twice "
                "differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
                "function for example)."
            )


def constant(derivative: str, index: int) -> RuntimeError:
    return RuntimeError(
        f"The {derivative} of the user-provided function is independent of input {index}. {STRICT[:-1]} when "
        "create_graph=True."
    )


def unrelated(output: int) -> RuntimeError:
    return RuntimeError(
        f"Output {output} of the user-provided function does not require gradients. The outputs must be computed in "
        "a differentiable manner from the input when running in strict mode."
    )


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), v^T J): the gradients of the inputs where those of the outputs are `v`."""
    with within(STATE.get().with_grad(True)):
        (inputs_tuple, xs), (outputs_tuple, ys) = evaluated(func, inputs, create_graph, "vjp")
        seeds = direction(v, ys, outputs_tuple, "vjp")
        found = gradients(ys, xs, seeds, create_graph, strict)
    return tidy(ys, outputs_tuple, create_graph), tidy(found, inputs_tuple, create_graph)


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), J v): how the outputs move where the inputs move along `v`."""
    with within(STATE.get().with_grad(True)):
        inputs_tuple, given = as_tuple(inputs, "inputs", "jvp")
        xs = separate(given, create_graph)
        moves = direction(v, xs, inputs_tuple, "jvp")
        outputs_tuple, unpacked = pushed(func, xs, moves, "jvp")
        if strict:  # which inputs the outputs depend on, backward tells
            gradients([y for y, _ in unpacked], xs, [y.new_ones(y.shape) for y, _ in unpacked], False, True)
        for index, (_, tangent) in enumerate(unpacked if strict and create_graph else ()):
            if tangent is None or not tangent.requires_grad:
                raise constant("jacobian", index)
        moved = [y.new_zeros(y.shape) if tangent is None else tangent for y, tangent in unpacked]
    return tidy([y for y, _ in unpacked], outputs_tuple, create_graph), tidy(moved, outputs_tuple, create_graph)


def pushed(func: Function, xs: Sequence[Any], moves: Sequence[Any], name: str) -> tuple[bool, list[Any]]:
    """(whether the outputs are a tuple, each output with its tangent) where the inputs move along `moves`."""
    with dual_level():
        duals = [make_dual(x, move) for x, move in zip(xs, moves, strict=True)]
        is_tuple, ys = as_tuple(func(*duals), "outputs", name)
        return is_tuple, [unpack_dual(y) for y in ys]


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian: for each output and input a tensor of shape (*output.shape, *input.shape).

    One tensor, or tuples of them where outputs or inputs are tuples. strategy: "reverse-mode", a backward pass for each
    element of the outputs, or "forward-mode", a call of the function for each element of the inputs. With `vectorize`
    all of these are one, under vmap.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function '
            'has more outputs than inputs, "forward-mode" tends to be more performant. Otherwise, '
            'prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    if strict and strategy == "forward-mode":
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. "
            "Please either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        return jacobian_by_columns(func, inputs, vectorize)
    with within(STATE.get().with_grad(True)):
        (inputs_tuple, xs), (outputs_tuple, ys) = evaluated(func, inputs, create_graph, "jacobian")
        if vectorize:
            rows = [batched_rows(y, xs, create_graph) for y in ys]
        else:
            rows = [jacobian_of(y, xs, create_graph, strict, f"Output {i}") for i, y in enumerate(ys)]
    made = tuple(tidy(row, inputs_tuple, create_graph) for row in rows)
    return made if outputs_tuple else made[0]


def jacobian_of(output: Any, inputs: Sequence[Any], create_graph: bool, strict: bool, name: str) -> list[Any]:
    """The Jacobian of one output, for the user `name`: one tensor for each input."""
    elements = output.reshape(-1)
    rows = [gradients([elements[i]], inputs, None, create_graph, strict, name) for i in range(output.numel())]
    if not rows:
        return [x.new_zeros((*output.shape, *x.shape)) for x in inputs]
    return [stacked([row[j] for row in rows]).view((*output.shape, *x.shape)) for j, x in enumerate(inputs)]


def stacked(tensors: list[Any]) -> Any:
    """The tensors as one, along a new first dimension."""
    return ops.aten.stack.default(tensors)


def batched_rows(output: Any, inputs: Sequence[Any], create_graph: bool) -> list[Any]:
    """Returns the rows of a Jacobian by one backward pass for a batch of unit gradients."""
    if not (output.requires_grad and output.numel()):
        return [x.new_zeros((*output.shape, *x.shape)) for x in inputs]
    rows = grad(
        output,
        inputs,
        units(output),
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
        is_grads_batched=True,
    )
    return [
        x.new_zeros((*output.shape, *x.shape)) if row is None else row.reshape((*output.shape, *x.shape))
        for row, x in zip(rows, inputs, strict=True)
    ]


def units(like: Any) -> Any:
    """For each element of a tensor, one like it that is 1 there and 0 elsewhere: along a new first dimension."""
    made = like.new_zeros((like.numel(), like.numel()))
    made.diagonal().fill_(1)
    return made.view((like.numel(), *like.shape))


def _construct_standard_basis_for(tensors: Sequence[Any], tensor_numels: Sequence[int]) -> tuple[Any, ...]:
    """The parts of the unit matrix that belong to each of several tensors, whose numbers of elements are given."""
    total, start, made = sum(tensor_numels), 0, []
    for tensor, count in zip(tensors, tensor_numels, strict=True):
        made.append(tensor.new_zeros(total, count))
        made[-1].narrow(0, start, count).diagonal().fill_(1)
        start += count
    return tuple(made)


def jacobian_by_columns(func: Function, inputs: Any, vectorize: bool) -> Any:
    """The Jacobian by forward mode: a call of the function for each element of the inputs, or one for all."""
    inputs_tuple, given = as_tuple(inputs, "inputs", "jacobian")
    xs, outputs_tuple = separate(given, False), True

    def column(*moves: Any) -> Any:
        nonlocal outputs_tuple
        with within(STATE.get().with_grad(True)):
            outputs_tuple, unpacked = pushed(func, xs, moves, "jacobian")
        return tuple(y.new_zeros(y.shape) if moved is None else moved.detach() for y, moved in unpacked)

    wholes: list[Any] = []  # for each input, for each output: the columns, along the first dimension
    for place, x in enumerate(xs):
        moves = [units(x) if i == place else y.new_zeros((x.numel(), *y.shape)) for i, y in enumerate(xs)]
        if vectorize:
            wholes.append(BATCHED()(column, tuple(moves)))
        else:
            columns = [column(*(move[element] for move in moves)) for element in range(x.numel())]
            wholes.append([stacked(list(parts)) for parts in zip(*columns, strict=True)])
    rows = tuple(
        tidy(
            [
                whole[o].movedim(0, -1).reshape((*whole[o].shape[1:], *x.shape))
                for whole, x in zip(wholes, xs, strict=True)
            ],
            inputs_tuple,
            False,
        )
        for o in range(len(wholes[0]))
    )
    return rows if outputs_tuple else rows[0]


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The matrix of second derivatives of a scalar: for inputs i, j a tensor of shape (*i.shape, *j.shape)."""
    inputs_tuple, _ = as_tuple(inputs, "inputs", "hessian")

    def gradient(*xs: Any) -> Any:
        def checked(*args: Any) -> Any:
            number = scalar(func(*args), "hessian")
            if strict and not number.requires_grad:
                raise unrelated(0)
            return number

        found = jacobian(checked, xs, create_graph=True)
        if strict:
            check_second_order(found)
        return found if inputs_tuple else found[0]

    return jacobian(
        gradient,
        inputs,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )


def scalar(output: Any, name: str) -> Any:
    """The one number that a function gives. RuntimeError for anything else."""
    is_tuple, (first, *rest) = as_tuple(output, "outputs", name)
    if is_tuple or rest:
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if first.numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
    return first.reshape(())


def second_order(func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str) -> tuple[Any, Any]:
    with within(STATE.get().with_grad(True)):
        inputs_tuple, given = as_tuple(inputs, "inputs", name)
        xs = separate(given, create_graph)
        moves = direction(v, xs, inputs_tuple, name)
        output = func(*xs)
        number = scalar(output, name)
        if strict and not number.requires_grad:
            raise unrelated(0)
        first = gradients([number], xs, None, True, strict, derivative="")
        if strict:
            check_second_order(first)
        found = gradients(first, xs, moves, create_graph, strict, "The hessian", "hessian")
    return tidy([output], False, create_graph), tidy(found, inputs_tuple, create_graph)


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), v^T H) for a function that gives one number."""
    return second_order(func, inputs, v, create_graph, strict, "vhp")


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """(func(*inputs), H v) for a function that gives one number: the same as `vhp`, since H is symmetric."""
    return second_order(func, inputs, v, create_graph, strict, "hvp")
