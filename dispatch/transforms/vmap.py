"""vmap: a function of one example becomes a function of a whole batch, without being written for one.

Read next: vmap_level.py, how that is done; jacobians.py, what it is good for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.autograd import BATCHED
from redispatch.dispatch.pytree import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import wrapped

from .vmap_level import RANDOMNESS, VmapLevel

Dims = int | tuple[Any, ...]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func` of one example as a function of a batch.

    in_dims: along which dimension each input is batched, None for one that is the same for all: an int, or a pytree
    that fits the inputs. out_dims: where the batch's dimension stands in the outputs, in the same way.
    randomness: what operators that draw numbers do: "error", "different" for each example, or the "same".
    chunk_size: how many examples are computed at a time; None: all.
    Errors: ValueError where the dims do not fit, sizes differ, or an output is no tensor; RuntimeError for what cannot
    be batched, such as control flow that depends on values.

    >>> import redispatch as rd
    >>> dot = lambda x, y: (x * y).sum()
    >>> rd.func.vmap(dot)(rd.ones(3, 2), rd.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args: Any, **kwargs: Any) -> Any:
        if type(in_dims) is int and type(out_dims) is int and chunk_size is None and plain_batches(in_dims, args):
            return run_plain(func, in_dims, args, kwargs, out_dims, randomness)
        name = name_of(func)
        size, dims, flat, spec = batched_inputs(in_dims, args, name)

        def run_some(size: int, flat: list[Any]) -> Any:
            return run(func, size, dims, flat, spec, kwargs, out_dims, randomness, name)

        if chunk_size is None or chunk_size >= size:
            return run_some(size, flat)
        return run_in_chunks(run_some, size, dims, flat, out_dims, name, chunk_size)

    return batched


def name_of(func: Callable[..., Any]) -> str:
    """Returns the name of a function for error messages."""
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


def plain_batches(dim: int, args: tuple[Any, ...]) -> bool:
    """Whether all arguments are tensors of one size along a dimension: no tree has to be taken apart."""
    size = None
    for one in args:
        if not isinstance(one, Tensor) or not 0 <= dim < len(one._shape):
            return False
        if size is not None and one._shape[dim] != size:
            return False
        size = one._shape[dim]
    return size is not None


def run_plain(
    func: Callable[..., Any], in_dim: int, args: tuple[Any, ...], kwargs: dict[str, Any], out_dim: int, randomness: str
) -> Any:
    """The outputs of the whole batch, where arguments are tensors."""
    level = VmapLevel(args[0]._shape[in_dim], randomness)
    level.known += args
    with level:
        outputs = func(*[wrapped(one, level, in_dim) for one in args], **kwargs)
        name = name_of(func)
        if isinstance(outputs, Tensor):
            return handed_out(level, outputs, out_dim, name)
        leaves, spec = tree_flatten(outputs)
        return tree_unflatten([handed_out(level, leaf, out_dim, name) for leaf in leaves], spec)


def batched_inputs(in_dims: Any, args: tuple[Any, ...], name: str) -> tuple[int, list[int | None], list[Any], Any]:
    """(size of the batch, each leaf's batch dimension, leaves, their structure). ValueError where they do not fit."""
    called = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, int | tuple):
        raise ValueError(
            f"{called}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{called}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_structure(in_dims)} but inputs has structure {spec}."
        )
    dims = [checked_dim(value, dim, called) for value, dim in zip(flat, dims, strict=True)]
    sizes = [value.size(dim) for value, dim in zip(flat, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0], dims, flat, spec


def checked_dim(value: Any, dim: Any, called: str) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{called}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(value, Tensor):
        raise ValueError(
            f"{called}: Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over "
            "non-Tensor arguments, please use None as the respective in_dim"
        )
    if not -value.dim() <= dim < value.dim():
        raise ValueError(
            f"{called}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {value.dim()} so "
            f"expected in_dim to satisfy -{value.dim()} <= in_dim < {value.dim()}."
        )
    return dim % value.dim()


def run(
    func: Callable[..., Any],
    size: int,
    dims: list[int | None],
    flat: list[Any],
    spec: Any,
    kwargs: dict[str, Any],
    out_dims: Any,
    randomness: str,
    name: str,
) -> Any:
    """The outputs of the whole batch."""
    level = VmapLevel(size, randomness)
    level.known += flat
    with level:
        examples = [level.wrap(value, dim) for value, dim in zip(flat, dims, strict=True)]
        outputs = func(*tree_unflatten(examples, spec), **kwargs)
        leaves, out_spec = tree_flatten(outputs)
        places = output_dims(out_dims, outputs, out_spec, name)
        whole = [handed_out(level, leaf, dim, name) for leaf, dim in zip(leaves, places, strict=True)]
    return tree_unflatten(whole, out_spec)


def output_dims(out_dims: Any, outputs: Any, spec: Any, name: str) -> list[Any]:
    """The place of the batch's dimension in each output. ValueError where `out_dims` does not fit."""
    called = f"vmap({name}, ..., out_dims={out_dims})"
    if isinstance(outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    for leaf in tree_flatten(out_dims)[0] if out_dims is not None else ():
        if leaf is not None and not isinstance(leaf, int):
            raise ValueError(
                f"{called}: `out_dims` must be an int, None or a python collection of ints representing where in the "
                "outputs the vmapped dimension should appear."
            )
    found = [None] * spec.num_leaves if out_dims is None else _broadcast_to_and_flatten(out_dims, spec)
    if found is None:
        raise ValueError(
            f"{called}(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_structure(out_dims)} but outputs has structure {spec}."
        )
    return found


def handed_out(level: VmapLevel, output: Any, dim: int | None, name: str) -> Any:
    """One output of the batch; without a dimension, what is the same for all."""
    if dim is None:
        if isinstance(output, Tensor) and level.dims_of(output) is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    if not -output.dim() - 1 <= dim <= output.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-output.dim() - 1}, {output.dim()}], but got {dim})"
        )
    return level.batch_of(output, dim)


def run_in_chunks(
    run_some: Callable[[int, list[Any]], Any],
    size: int,
    dims: list[int | None],
    flat: list[Any],
    out_dims: Any,
    name: str,
    chunk_size: int,
) -> Any:
    """Maps `chunk_size` examples at a time, by `run_some(how many, leaves)`."""
    parts = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        chunk = [
            value if dim is None else value.narrow(dim, start, count) for value, dim in zip(flat, dims, strict=True)
        ]
        parts.append(run_some(count, chunk))
    leaves = [tree_flatten(part)[0] for part in parts]
    out_spec = tree_flatten(parts[0])[1]
    places = output_dims(out_dims, parts[0], out_spec, name)
    joined = [
        leaves[0][i] if dim is None else ops.aten.cat.default([leaf[i] for leaf in leaves], dim)
        for i, dim in enumerate(places)
    ]
    return tree_unflatten(joined, out_spec)


def mapped(function: Callable[..., Any], batches: tuple[Any, ...]) -> Any:
    """The function's results for a batch; what is None for each example stays None."""

    def kept(*examples: Any) -> Any:
        found = function(*examples)
        leaves, spec = tree_flatten(found, is_leaf=lambda one: one is None)
        known.append((spec, [leaf is not None for leaf in leaves]))
        return tuple(leaf for leaf in leaves if leaf is not None)

    known: list[Any] = []
    results = iter(vmap(kept)(*batches))
    spec, given = known[0]
    return tree_unflatten([next(results) if there else None for there in given], spec)


BATCHED.fill(mapped)
