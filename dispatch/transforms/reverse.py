"""Derivatives as functions of functions: `vjp`, `grad`, `grad_and_value`; `jvp` and `linearize`.

The function runs under a GradLevel of its own, so that what it computes is recorded there, and its gradients are
computations which levels outside may transform again: `grad(grad(f))`, `vmap(grad(f))`.

Read next: dispatch/autograd/grad_level.py and dispatch/autograd/jvp_level.py, what a level does;
dispatch/autograd/forward.py, what an operator's tangent is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import STATE, within
from redispatch.dispatch.autograd import ONES_LIKE, GradLevel, JvpLevel
from redispatch.dispatch.autograd.function_levels import check_size
from redispatch.dispatch.autograd.jvp_level import tangent_of
from redispatch.dispatch.layers.transforms import without_dead
from redispatch.dispatch.pytree import TreeSpec, tree_flatten, tree_map_only, tree_unflatten, treespec_pprint
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import wrapped

# Which arguments of a function a transform is about, and the tensors in them ------------------------------------------
#
# Shared by all transforms that differentiate.

Argnums = int | tuple[int, ...]


def positions(argnums: Any, count: int) -> tuple[int, ...]:
    """The positions that `argnums` names, negative ones counted from the end.

    Errors: RuntimeError where there is no such argument, one is named twice, or none is named.
    """
    if type(argnums) is int:
        return (position(argnums, count),)
    if not isinstance(argnums, int | tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if argnums == ():
        raise RuntimeError("argnums must be non-empty")
    found = tuple(position(one, count) for one in (argnums if isinstance(argnums, tuple) else (argnums,)))
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {found}")
    return found


def position(argnum: Any, count: int) -> int:
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -count <= argnum < count:
        raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
    return argnum % count


def chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    """The arguments that `argnums` names: one for an int, a tuple for a tuple."""
    if type(argnums) is int:  # as nearly always
        return args[position(argnums, len(args))]
    found = tuple(args[i] for i in positions(argnums, len(args)))
    return found if isinstance(argnums, tuple) else found[0]


def replaced(args: tuple[Any, ...], argnums: Argnums, values: Any) -> tuple[Any, ...]:
    """`args` with others in the places that `argnums` names."""
    changed = list(args)
    if type(argnums) is int:
        changed[position(argnums, len(args))] = values
        return tuple(changed)
    for place, value in zip(
        positions(argnums, len(args)), values if isinstance(argnums, tuple) else (values,), strict=True
    ):
        changed[place] = value
    return tuple(changed)


def flat_tensors(tree: Any, what: Callable[[Any], str]) -> tuple[list[Any], TreeSpec]:
    """The tensors of a pytree. RuntimeError, with `what(leaf)`, for anything else in it."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(what(leaf))
    return leaves, spec


def to_differentiate(tree: Any) -> tuple[list[Any], TreeSpec]:
    """The tensors of a pytree of arguments. ValueError for anything else in it."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"Thing passed to transform API must be Tensor, got {type(leaf)}; name by `argnums` the arguments to "
                "differentiate, and pass constants as the others"
            )
    return leaves, spec


def output_tensors(output: Any, called: str) -> tuple[list[Any], TreeSpec]:
    """The tensors of a function's output. RuntimeError for anything else in it, and where there are none."""
    leaves, spec = tree_flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{called}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{called}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def split_aux(result: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    """(output, aux) of a function's result; None as aux where there is none."""
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


NAME = "vjp(f, *primals)"


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(func(*primals), vjp_fn), where `vjp_fn(cotangents)` gives the primals' gradients, a tuple; aux comes third.

    primals: pytrees of floating-point tensors. The result's tensors, and the cotangents', have the shapes of
    func's output. `vjp_fn` may be called several times.
    Errors: ValueError for primals, TypeError for cotangents that are no tensors; RuntimeError for outputs that are none
    or not floating-point, and for cotangents that do not match them.

    >>> import redispatch as rd
    >>> y, pull = rd.func.vjp(lambda x: x * x, rd.tensor([1.0, 2.0]))
    >>> pull(rd.ones(2))
    (tensor([2., 4.]),)
    """
    level = GradLevel()
    with level:
        flat, spec = to_differentiate(primals)
        leaves = [level.leaf(one) for one in flat]
        output, aux = split_aux(func(*tree_unflatten(leaves, spec)), has_aux, NAME)
        results, out_spec = output_tensors(output, NAME)
        for one in results:
            if not (one._dtype.is_floating_point or one._dtype.is_complex):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{one._dtype}; return what has no gradient as `aux`"
                )
        values = [level.unwrap(one) for one in results]
        aux = tree_map_only(Tensor, level.unwrap, aux)

    def vjp_fn(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        seeds, given = tree_flatten(cotangents)
        if given != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {treespec_pprint(given)}, primal output: {treespec_pprint(out_spec)}"
            )
        seeds = [cotangent(*one) for one in zip(range(len(seeds)), seeds, values, strict=True)]
        found = level.gradients(results, leaves, seeds, retain_graph=retain_graph)
        found = [one if one is not None else leaf.new_zeros(leaf._shape) for one, leaf in zip(found, flat, strict=True)]
        return tree_unflatten(found, spec)

    made = tree_unflatten(values, out_spec), vjp_fn
    return (*made, aux) if has_aux else made


def cotangent(index: int, seed: Any, value: Any) -> Any:
    """The gradient of one output: what was given, or 1 for None."""
    if seed is None:
        if value.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return value.new_ones(value._shape)
    if not isinstance(seed, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(seed).__name__}")
    if seed._shape != value._shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {seed._shape} and output[{index}] has a shape of "
            f"{value._shape}."
        )
    return seed


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (gradient, value) of `func`, whose output is a scalar.

    With `has_aux`, `func` gives (output, aux), and what is made of it (gradient, (value, aux)).
    argnums: the arguments to differentiate, pytrees of tensors each.
    Errors: ValueError for anything else among them; RuntimeError for another output, complex ones included.
    """

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        name = "grad_and_value(f)(*args)"
        with GradLevel() as level:
            flat, spec = to_differentiate(chosen(args, argnums))
            leaves = [level.leaf(one) for one in flat]
            given = replaced(args, argnums, tree_unflatten(leaves, spec))
            if len(args) > (len(argnums) if isinstance(argnums, tuple) else 1) or kwargs:  # constants, here
                given, kwargs = tree_map_only(Tensor, level.lift, (given, kwargs))
            output, aux = split_aux(func(*given, **kwargs), has_aux, name)
            if not isinstance(output, Tensor):
                raise RuntimeError(f"{name}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output._shape:
                raise RuntimeError(
                    f"{name}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe "
                    "you wanted to use the vjp or jacrev APIs instead?"
                )
            if output._dtype.is_complex:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output._dtype}"
                )
            value = level.unwrap(output)
            with within(STATE.get().outer()):
                ones = ONES_LIKE()(value)
            found = level.gradients([output], leaves, [ones])
            if has_aux:
                aux = tree_map_only(Tensor, level.unwrap, aux)
        tree = tree_unflatten([or_zeros(one, like) for one, like in zip(found, flat, strict=True)], spec)
        return (tree, (value, aux)) if has_aux else (tree, value)

    return gradient


def or_zeros(gradient: Any, like: Any) -> Any:
    return like.new_zeros(like._shape) if gradient is None else gradient


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `func`, whose output is a scalar; with `has_aux` (gradient, aux).

    >>> import redispatch as rd
    >>> rd.func.grad(lambda x: x**3)(rd.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


# Forward mode ------------------------------------------------------------------------------------------------------

JVP = "jvp(f, primals, tangents)"


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """(func(*primals), its derivative along `tangents`); with `has_aux` also aux.

    primals, tangents: tuples of pytrees of tensors of the same structure, shapes and dtypes. With `strict`, an output
    that does not depend on the primals is an error.
    Errors: RuntimeError where primals and tangents do not match, or an output is no tensor; ValueError for integers.

    >>> import redispatch as rd
    >>> rd.func.jvp(lambda x: x * x, (rd.tensor([1.0, 2.0]),), (rd.ones(2),))
    (tensor([1., 4.]), tensor([2., 4.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = flat_tensors(primals, lambda one: f"{JVP}: Expected primals to only contain Tensors, got {type(one)}")
    moved, moved_spec = flat_tensors(
        tangents, lambda one: f"{JVP}: Expected tangents to only contain Tensors, got {type(one)}"
    )
    if spec != moved_spec:
        raise RuntimeError(
            f"{JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{moved_spec}"
        )
    if not flat:
        raise RuntimeError(f"{JVP}: Expected primals to contain at least one Tensor.")
    for value, tangent in zip(flat, moved, strict=True):
        check_tangent(value, tangent)
    with JvpLevel() as level:
        duals = [wrapped(without_dead(x), level, tangent=without_dead(t)) for x, t in zip(flat, moved, strict=True)]
        output, aux = split_aux(func(*tree_unflatten(duals, spec)), has_aux, JVP)
        results, out_spec = output_tensors(output, JVP)
        values = [level.unwrap(one) for one in results]
        aux = tree_map_only(Tensor, level.unwrap, aux)
    found = [tangent_of(one) if getattr(one, "_level", None) is level else None for one in results]
    if strict and any(tangent is None for tangent in found):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
            "with strict=True."
        )
    found = [value.new_zeros(value._shape) if t is None else t for t, value in zip(found, values, strict=True)]
    made = tree_unflatten(values, out_spec), tree_unflatten(found, out_spec)
    return (*made, aux) if has_aux else made


def check_tangent(primal: Any, tangent: Any) -> None:
    for name, one in (("primal", primal), ("tangent", tangent)):
        if not (one._dtype.is_floating_point or one._dtype.is_complex):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {one._dtype}")
    check_size(primal, tangent)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(func(*primals), jvp_fn), where `jvp_fn(*tangents)` gives the derivative of `func` at the primals.

    The function runs once. Its derivative is the transpose of `vjp`, which is linear; so each call of `jvp_fn` runs
    what was recorded, and not the function.
    """
    output, transpose = vjp(func, *primals)
    results, out_spec = tree_flatten(output)
    seeds = tree_unflatten([one.new_zeros(one._shape) for one in results], out_spec)
    _, applied = vjp(transpose, seeds)

    def jvp_fn(*tangents: Any) -> Any:
        given, expected = tree_flatten(tangents), tree_flatten(primals)
        if given[1] != expected[1]:
            raise RuntimeError(
                f"Expected the tangents {given[1]} to have the same argspec as the primals {expected[1]}"
            )
        for index, (primal, tangent) in enumerate(zip(expected[0], given[0], strict=True)):
            for fact in ("shape", "device", "dtype"):
                found, wanted = getattr(tangent, fact), getattr(primal, fact)
                if found != wanted:
                    raise RuntimeError(
                        f"tangent:{index} with {fact} {found} in flattened pytree doesn't match the {fact} {wanted} of "
                        "the corresponding primal."
                    )
        return applied(tangents)[0]

    return output, jvp_fn
