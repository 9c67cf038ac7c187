"""Jacobians and Hessians: a derivative along each unit vector, all of them at once by `vmap`.

Read next: reverse.py and reverse.py, the derivatives along one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.pytree import tree_flatten, tree_unflatten
from redispatch.dispatch.tensor import Tensor

from .reverse import Argnums, chosen, flat_tensors, jvp, replaced, vjp
from .vmap import vmap


def units(tensors: list[Any]) -> list[Any]:
    """For each tensor, a batch in which the examples run through the unit vectors of all of them together."""
    total = sum(tensor.numel() for tensor in tensors)
    made, start = [], 0
    for tensor in tensors:
        count = tensor.numel()
        block = ops.aten.eye.m(total, count, dtype=tensor.dtype, device=tensor.device).roll(start, 0) if count else None
        block = tensor.new_zeros((total, 0)) if block is None else block
        made.append(block.view((total, *tensor.shape)))
        start += count
    return made


def check_real(name: str, which: str, tree: Any) -> None:
    """Raises RuntimeError for a complex tensor: along a unit vector is half of its derivative."""
    for index, one in enumerate(tree_flatten(tree)[0]):
        if isinstance(one, Tensor) and one._dtype.is_complex:
            raise RuntimeError(
                f"{name}: Expected all {which} to be real but received complex tensor at flattened input idx: {index}"
            )


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `func` by reverse mode: for an output and an input, a tensor (*output.shape, *input.shape).

    The result has the structure of the output, and in each place that of the arguments which `argnums` names. With
    `has_aux` (jacobian, aux). chunk_size: how many rows are computed at a time; None: all. _preallocate_and_copy is
    PyTorch's wish to write chunks into one tensor at once; the result is the same.

    >>> import redispatch as rd
    >>> rd.func.jacrev(lambda x: x * x)(rd.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        check_real("jacrev", "inputs", args)
        selected = chosen(args, argnums)

        def of_selected(values: Any) -> Any:
            return func(*replaced(args, argnums, values), **kwargs)

        output, pull, *aux = vjp(of_selected, selected, has_aux=has_aux)
        results, out_spec = flat_tensors(
            output, lambda one: f"jacrev(f): expected f(*args) to return only tensors, got unsupported type {type(one)}"
        )
        check_real("jacrev", "outputs", results)
        seeds = units(results)
        rows = vmap(lambda *seed: pull(tree_unflatten(list(seed), out_spec))[0], chunk_size=chunk_size)(*seeds)
        parts, in_spec = tree_flatten(rows)
        found, start = [], 0
        for result in results:
            stop = start + result.numel()
            found.append(
                tree_unflatten([one[start:stop].view((*result.shape, *one.shape[1:])) for one in parts], in_spec)
            )
            start = stop
        made = tree_unflatten(found, out_spec)
        return (made, aux[0]) if has_aux else made

    return jacobian


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """The Jacobian of `func` by forward mode: as `jacrev`, but a call along each unit vector of the inputs."""

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        check_real("jacfwd", "inputs", args)
        selected = chosen(args, argnums)
        inputs, in_spec = flat_tensors(
            selected, lambda one: f"jacfwd(f): expected the arguments to be tensors, got {type(one)}"
        )

        def along(*moves: Any) -> Any:
            def of_inputs(*values: Any) -> Any:
                return func(*replaced(args, argnums, tree_unflatten(list(values), in_spec)), **kwargs)

            output, moved, *aux = jvp(of_inputs, tuple(inputs), moves, has_aux=has_aux)
            return (moved, *aux) if has_aux else (moved,)

        columns, *aux = vmap(along, randomness=randomness)(*units(inputs))
        parts, out_spec = tree_flatten(columns)
        check_real("jacfwd", "outputs", parts)
        found = []
        for part in parts:
            rest, start, of_inputs = part.shape[1:], 0, []
            for value in inputs:
                stop = start + value.numel()
                of_inputs.append(part[start:stop].movedim(0, -1).reshape((*rest, *value.shape)))
                start = stop
            found.append(tree_unflatten(of_inputs, in_spec))
        made = tree_unflatten(found, out_spec)
        if not has_aux:
            return made
        leaves, spec = tree_flatten(aux[0])
        return made, tree_unflatten([leaf[0] for leaf in leaves], spec)

    return jacobian


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The matrix of second derivatives of `func`: forward mode over reverse mode.

    >>> import redispatch as rd
    >>> rd.func.hessian(lambda x: (x**3).sum())(rd.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
