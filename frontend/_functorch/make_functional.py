"""`make_functional` and its kin: a module as a function of its parameters and buffers, as tuples.

New code has `redispatch.func.functional_call`, which takes them by name; these are written on it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.func import functional_call, stack_module_state
from redispatch.nn import Module


class FunctionalModuleWithBuffers(Module):
    """The function that `make_functional_with_buffers` makes of a module: of (params, buffers, *args, **kwargs)."""

    def __init__(self, stateless_model: Any, param_names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(param_names), tuple(buffer_names)

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """The module's output where these stand in the place of its parameters and buffers."""
        given = zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True)
        return functional_call(self.stateless_model, dict(given), args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """The function that `make_functional` makes of a module: of (params, *args, **kwargs)."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """The module's output where these stand in the place of its parameters."""
        return super().forward(params, (), *args, **kwargs)


def make_functional_with_buffers(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any, Any]:
    """(function, parameters, buffers) of a copy of a module, of which parameters and buffers are tuples."""
    return functional(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
    """(function, parameters) of a copy of a module. RuntimeError for one that has buffers."""
    refuse_buffers("make_functional", model)
    return functional(FunctionalModule, model, disable_autograd_tracking)[:2]


def refuse_buffers(name: str, model: Any) -> None:
    if list(model.buffers()):
        raise RuntimeError(f"{name}(model): `model` has buffers. Please use {with_buffers(name)}(model) instead.")


def with_buffers(name: str) -> str:
    """Returns the name of the function that takes modules with buffers."""
    return name.replace("functional", "functional_with_buffers")


def functional(kind: type, model: Any, disable_autograd_tracking: bool) -> tuple[Any, Any, Any]:
    model = copy.deepcopy(model)
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    if disable_autograd_tracking:
        for param in params.values():
            param.requires_grad_(False)
    return kind(model, list(params), list(buffers)), tuple(params.values()), tuple(buffers.values())


def combine_state_for_ensemble(models: Sequence[Any]) -> tuple[Any, Any, Any]:
    """(function, parameters, buffers) of several like modules, each stacked along a new first dimension, for `vmap`.

    Errors: RuntimeError where there are no models, or they differ in class or in training mode.
    """
    try:
        params, buffers = stack_module_state(models)
    except RuntimeError as problem:
        raise RuntimeError(str(problem).replace("stack_module_state", "combine_state_for_ensemble")) from None
    function, _, _ = make_functional_with_buffers(models[0])
    return function, *(tuple(one.detach() for one in each.values()) for each in (params, buffers))


# The first version: functions of (weights, inputs as a tuple) --------------------------------------------------------


def make_functional_with_buffers_deprecated_v1(model: Any) -> tuple[Any, ...]:
    """(weights, buffers, function of (weights, buffers, inputs), names of both) of a copy of a module."""
    made, params, buffers = make_functional_with_buffers(model)

    def function(weights: Any, buffers: Any, data: Any) -> Any:
        return made(weights, buffers, *data)

    return params, buffers, function, made.param_names, made.buffer_names


def make_functional_deprecated_v1(model: Any) -> tuple[Any, Any, Any]:
    """(weights, function of (weights, inputs), names) of a copy of a module. RuntimeError for one that has buffers."""
    refuse_buffers("make_functional_deprecated_v1", model)
    weights, _, function, names, _ = make_functional_with_buffers_deprecated_v1(model)
    return weights, lambda weights, data: function(weights, (), data), names


def functional_init(model_class: Any, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu") -> Callable[..., Any]:
    """`make_functional_deprecated_v1` of a class: of one module, or of an ensemble with its weights stacked."""
    return initialised(make_functional_deprecated_v1, 1, model_class, ensemble_shape, device)


def functional_init_with_buffers(
    model_class: Any, ensemble_shape: tuple[int, ...] = (), device: Any = "cpu"
) -> Callable[..., Any]:
    """`make_functional_with_buffers_deprecated_v1` of a class: of one module, or of an ensemble."""
    return initialised(make_functional_with_buffers_deprecated_v1, 2, model_class, ensemble_shape, device)


def initialised(make: Callable[..., Any], count: int, model_class: Any, shape: Any, device: Any) -> Callable[..., Any]:
    """Returns a function that makes modules; the first `count` things that `make` gives of them are stacked."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if len(shape) >= 2:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if shape and shape[0] <= 0:
            raise ValueError(f"num_models {shape[0]} should be > 0")
        models = [model_class(*args, **kwargs).to(device) for _ in range(shape[0] if shape else 1)]
        if not shape:
            return make(models[0])
        tables = stack_module_state(models)[:count]
        stacked = [tuple(one.detach() for one in table.values()) for table in tables]
        return *stacked, *make(models[0])[count:]

    return wrapped
