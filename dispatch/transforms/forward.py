"""Forward mode as functions of functions: `jvp` and `linearize`.

Read next: dispatch/autograd/jvp_level.py, what a level does; dispatch/autograd/forward.py, what an operator's tangent
is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch.autograd import JvpLevel
from redispatch.dispatch.autograd.function_levels import check_size
from redispatch.dispatch.autograd.jvp_level import tangent_of
from redispatch.dispatch.layers.transforms import without_dead
from redispatch.dispatch.pytree import tree_flatten, tree_map_only, tree_unflatten
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import wrapped

from .reverse import flat_tensors, output_tensors, split_aux, vjp

NAME = "jvp(f, primals, tangents)"


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
        raise RuntimeError(f"{NAME}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = flat_tensors(primals, lambda one: f"{NAME}: Expected primals to only contain Tensors, got {type(one)}")
    moved, moved_spec = flat_tensors(
        tangents, lambda one: f"{NAME}: Expected tangents to only contain Tensors, got {type(one)}"
    )
    if spec != moved_spec:
        raise RuntimeError(
            f"{NAME}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents with structure "
            f"{moved_spec}"
        )
    if not flat:
        raise RuntimeError(f"{NAME}: Expected primals to contain at least one Tensor.")
    for value, tangent in zip(flat, moved, strict=True):
        check_tangent(value, tangent)
    with JvpLevel() as level:
        duals = [wrapped(without_dead(x), level, tangent=without_dead(t)) for x, t in zip(flat, moved, strict=True)]
        output, aux = split_aux(func(*tree_unflatten(duals, spec)), has_aux, NAME)
        results, out_spec = output_tensors(output, NAME)
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
