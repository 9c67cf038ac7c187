"""Modules as functions of their parameters: `functional_call`, `stack_module_state`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from redispatch.dispatch import ops
from redispatch.dispatch.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's output where these tensors stand in the place of its parameters and buffers.

    parameter_and_buffer_dicts: one dict by qualified name, or several. What the call writes to a buffer is written to
    the dict's tensor; where it puts another tensor in its place, the dict (if it is one) has that afterwards. A name
    that the module does not have is an attribute for the time of the call. tie_weights: parameters that are one tensor
    stay one. strict: every parameter and buffer must be given, and no other name.
    Errors: ValueError for a name in two dicts, or a tied parameter given twice; RuntimeError where `strict` is broken;
    TypeError for what is no tensor; AttributeError for a name inside of a module that is not there.

    >>> import redispatch as rd
    >>> layer = rd.nn.Linear(2, 1, bias=False)
    >>> rd.func.functional_call(layer, {"weight": rd.ones(1, 2)}, rd.tensor([1.0, 2.0])).tolist()
    [3.0]
    """
    given = merged(parameter_and_buffer_dicts)
    if not isinstance(args, tuple):
        args = () if args is None else (args,)
    with swapped(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def merged(dicts: Any) -> dict[str, Any]:
    """One dict of several. ValueError where a name is in two."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(one, dict) for one in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for one in dicts for name in one]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for one in dicts for name, value in one.items()}


def places(module: Any) -> dict[str, tuple[Any, dict[str, Any], str]]:
    """By qualified name, where each parameter and buffer is: (owner, its dict, name there). Tied ones are in each."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, value in table.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = (owner, table, name)
    return found


@contextmanager
def swapped(module: Any, given: dict[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """A region in which a module has other parameters and buffers; they are put back however it ends."""
    known = places(module)
    if strict:
        missing, unexpected = sorted(known.keys() - given.keys()), sorted(given.keys() - known.keys())
        if tie_weights:
            tied = {id(known[name][1][known[name][2]]) for name in given if name in known}
            missing = [name for name in missing if id(known[name][1][known[name][2]]) not in tied]
        if missing or unexpected:
            problems = [f"Unexpected key(s): {', '.join(map(repr, unexpected))}."] if unexpected else []
            problems += [f"Missing key(s): {', '.join(map(repr, missing))}."] if missing else []
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    changed: dict[str, tuple[dict[str, Any], str, Any]] = {}  # by name: where it is, and what was there
    try:
        for name, value in (with_tied(known, given) if tie_weights else given).items():
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{value!r} is not an instance of torch.Tensor; it was given for {name!r}")
            table, own = known[name][1:] if name in known else (vars(owner_of(module, name)), name.rpartition(".")[2])
            changed[name] = table, own, table.get(own, MISSING)
            table[own] = value
        yield
    finally:
        for name, (table, own, former) in reversed(changed.items()):
            if name in given and name in known:
                given[name] = table[own]
            table[own] = former
            if former is MISSING:
                del table[own]


MISSING = object()


def owner_of(module: Any, name: str) -> Any:
    """The module inside of which a qualified name is. AttributeError where there is none."""
    for part in name.split(".")[:-1]:
        if part not in module._modules:
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        module = module._modules[part]
    return module


def with_tied(known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """`given` with what is tied to one of its names. ValueError where two names of one tensor are given two values."""
    by_tensor: dict[int, list[str]] = {}
    for name, (_, table, own) in known.items():
        by_tensor.setdefault(id(table[own]), []).append(name)
    complete = dict(given)
    for names in by_tensor.values():
        values = {id(given[name]): given[name] for name in names if name in given}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(set(names) & given.keys())}, which are tied. "
                "Consider using tie_weights=False"
            )
        for value in values.values():
            complete.update(dict.fromkeys(names, value))
    return complete


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Takes the running statistics from all batch norms of a module, which then normalise by those of each batch:
    `vmap` cannot write to a buffer that all examples share. Returns the module."""
    from redispatch.nn.normalization import _BatchNorm  # here, since `nn` is imported late, and this room is not

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of several like modules, each stacked along a new first dimension: an ensemble, for `vmap`.

    Errors: RuntimeError where there are no models, or they differ in class or in training mode.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables: list[dict[str, Any]]) -> dict[str, Tensor]:
        return {name: stack(name, [table[name] for table in tables]) for name in tables[0]}

    return (
        stacked([dict(model.named_parameters()) for model in models]),
        stacked([dict(model.named_buffers()) for model in models]),
    )


def stack(name: str, tensors: list[Any]) -> Any:
    """The tensors as one leaf, which wants a gradient if they do."""
    wants = {tensor.requires_grad for tensor in tensors}
    if len(wants) > 1:
        raise RuntimeError(
            f"Expected {name} from each model to have the same .requires_grad; freeze it in none or all of them"
        )
    whole = ops.aten.stack.default([tensor.detach() for tensor in tensors], 0)
    return whole.requires_grad_() if wants.pop() else whole
