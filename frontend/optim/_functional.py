"""The optimizers as functions of lists: `adam(params, grads, exp_avgs, ..., lr=0.1)`, each one row of a table.

A function takes one step of its class, with the state that it is given and writes to; nothing is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from redispatch.dispatch.tensor import Tensor

from .adagrad import Adadelta, Adagrad, RMSprop, Rprop
from .adam import Adam, Adamax, AdamW, NAdam, RAdam
from .optimizer import Optimizer
from .sgd import ASGD, SGD

DECOUPLED = "decoupled_weight_decay"
FUSED = "fused grad_scale found_inf"


def function_of(kind: type[Optimizer], lists: str, switches: str, options: str, **fixed: Any) -> Callable[..., None]:
    """Returns the function of a class of optimizers.

    lists: the state of the parameters, in lists. switches: what may be given by place, too. options: by name alone.
    """
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ["params", "grads", *lists.split()]]
    parameters += [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in switches.split()]
    parameters += [Parameter(name, Parameter.KEYWORD_ONLY) for name in options.split()]
    signature = Signature(parameters)

    def function(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        group = bound.arguments | fixed
        for pair, names in PAIRS.items():
            if names[0] in group:
                group[pair] = tuple(group[name] for name in names)
        if not all(isinstance(step, Tensor) for step in group.get("state_steps", ())):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        self = kind.__new__(kind)
        kept = {name: bound.arguments[name] for name in lists.split() if bound.arguments[name]}
        params = list(group["params"])
        states = [{state_of(name): values[k] for name, values in kept.items()} for k in range(len(params))]
        if "momentum_buffer_list" in kept:
            states = [{name: value for name, value in state.items() if value is not None} for state in states]
        self.move_all(params, list(group["grads"]), states, group)
        for number, state in enumerate(states):
            for name, values in kept.items():
                values[number] = state[state_of(name)]  # of the first step of SGD's momentum it is new

    function.__name__ = function.__qualname__ = kind.__name__.lower()
    function.__doc__ = f"Moves parameters by one step of {kind.__name__}, with its state in lists, in place."
    function.__signature__ = signature  # type: ignore[attr-defined]  # what `help` shows
    return function


PAIRS = {"betas": ("beta1", "beta2"), "step_sizes": ("step_size_min", "step_size_max"), "etas": ("etaminus", "etaplus")}


def state_of(name: str) -> str:
    """Returns the name in the state of an optimizer of what a list holds: `exp_avgs` is of `exp_avg`."""
    return name.removesuffix("_list").removesuffix("s").removeprefix("state_")


MEANS = "exp_avgs exp_avg_sqs"
SWITCHES = "foreach maximize differentiable capturable has_complex"
ADAM = "foreach capturable differentiable fused grad_scale found_inf has_complex"
adadelta = function_of(Adadelta, "square_avgs acc_deltas state_steps", "capturable foreach differentiable has_complex",
                       "lr rho eps weight_decay maximize")  # fmt: skip
adagrad = function_of(Adagrad, "state_sums state_steps", f"{FUSED} has_sparse_grad foreach differentiable has_complex",
                      "lr weight_decay lr_decay eps maximize")  # fmt: skip
adam = function_of(Adam, f"{MEANS} max_exp_avg_sqs state_steps", f"{ADAM} {DECOUPLED}",
                   "amsgrad beta1 beta2 lr weight_decay eps maximize")  # fmt: skip
adamax = function_of(Adamax, "exp_avgs exp_infs state_steps", SWITCHES, "eps beta1 beta2 lr weight_decay")
adamw = function_of(AdamW, f"{MEANS} max_exp_avg_sqs state_steps", ADAM,
                    "amsgrad beta1 beta2 lr weight_decay eps maximize", decoupled_weight_decay=True)  # fmt: skip
asgd = function_of(ASGD, "axs mus etas state_steps", SWITCHES, "lambd lr t0 alpha weight_decay")
nadam = function_of(NAdam, f"{MEANS} mu_products state_steps",
                    f"{DECOUPLED} foreach capturable differentiable has_complex maximize",
                    "beta1 beta2 lr weight_decay momentum_decay eps")  # fmt: skip
radam = function_of(RAdam, f"{MEANS} state_steps",
                    f"{DECOUPLED} foreach differentiable capturable has_complex maximize",
                    "beta1 beta2 lr weight_decay eps")  # fmt: skip
rmsprop = function_of(RMSprop, "square_avgs grad_avgs momentum_buffer_list state_steps", SWITCHES,
                      "lr alpha eps weight_decay momentum centered")  # fmt: skip
rprop = function_of(Rprop, "prevs step_sizes state_steps", "foreach capturable maximize differentiable has_complex",
                    "step_size_min step_size_max etaminus etaplus")  # fmt: skip
sgd = function_of(SGD, "momentum_buffer_list", f"has_sparse_grad foreach {FUSED}",
                  "weight_decay momentum lr dampening nesterov maximize")  # fmt: skip
