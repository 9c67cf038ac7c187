"""Optimizer: what all optimizers share. A subclass gives `update`, which moves one parameter, or `update_all`.

An optimizer holds *groups* of parameters, dictionaries with a list of parameters and the options for them (learning
rate, weight decay, ...), and for each parameter a dictionary of state (a momentum, a count of steps). One step walks
over all parameters that have a gradient. Everything else here is about the groups, and about saving and loading.

A formula is written once, for one parameter, in PyTorch's operators. With `foreach` it moves all together: `Many`
stands for them, and its methods are the operators on lists.

Read next: sgd.py, adam.py, lr_scheduler/scheduler.py.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any

import redispatch
from redispatch.autograd import RemovableHandle, enable_grad, set_grad_enabled
from redispatch.dispatch import ops
from redispatch.dispatch.tensor import TYPE_NAMED, Tensor, dtypes, preserve_format
from redispatch.kernels.ops import arithmetic, creation, from_data
from redispatch.nn.checkpoint import registered
from redispatch.nn.module import clear_grad
from redispatch.nn.parameter import Parameter
from redispatch.nn.tree import typename
from redispatch.nn.utils.lists import (
    PLAIN_TYPES,
    _get_fused_kernels_supported_devices,
    _group_tensors_by_device_and_dtype,
    unseen,
)

PLAIN_TYPES.add(Parameter)
Group = dict[str, Any]
Hooks = OrderedDict[int, Callable[..., Any]]


class _Required:
    """The default of an option that has none: every group must name it."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Updates parameters by their gradients.

    params:   an iterable of tensors, of pairs (name, tensor), or of dictionaries: `{"params": [...], "lr": 0.1}`.
    defaults: the options of groups that do not name them.
    Errors: TypeError for a single tensor or what is no tensor; ValueError for none at all, for one that was computed
    and for one in two groups.
    """

    state: defaultdict[Any, Any]
    param_groups: list[Group]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = with_hooks(cls.step)  # type: ignore[method-assign]  # wrapped on purpose

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._make_hooks()
        if defaults.get("fused"):
            self._step_supports_amp_scaling = True
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # Groups ---------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: Group) -> None:
        """Adds parameters with options of their own; the options that it does not name are the defaults.

        Errors: as the constructor's.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        names, params = split_names(param_group["params"])
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for param in params:
            self._check_parameter(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(set(params)) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        for group in self.param_groups:
            if ("param_names" in group) != ("param_names" in param_group):
                which = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{which} to the optimizer"
                )
        if not set(params).isdisjoint(chain.from_iterable(group["params"] for group in self.param_groups)):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _check_parameter(self, param: Any) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(param)}")
        if not (param.is_leaf or param.retains_grad or self.defaults.get("differentiable")):
            raise ValueError("can't optimize a non-leaf Tensor")

    # Stepping -------------------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Updates every parameter that has a gradient. Returns what `closure`, which computes the gradients, returns.

        Nothing is recorded, unless the optimizer is `differentiable`.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with set_grad_enabled(self.defaults.get("differentiable", False)):
            for group in self.param_groups:
                self.update_all(group)
        return loss

    def update_all(self, group: Group) -> None:
        """Moves the parameters of a group that have a gradient."""
        params, grads = [], []
        for param in group["params"]:
            grad = param.grad
            if grad is not None:
                params.append(param)
                grads.append(grad)
        self.move_all(params, grads, self._states(params, group), group)

    def _states(self, params: list[Any], group: Group) -> list[dict[str, Any]]:
        """Returns the state of each parameter, made before its first step."""
        states = [self.state[param] for param in params]
        for param, state in zip(params, states, strict=True):
            if not state:
                self._start(param, state, group)
        return states

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        """Makes the state of a parameter, before its first step."""

    def move_all(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        """Moves parameters by these gradients: one after the other, with `foreach` all of a kind together."""
        devices = _get_capturable_supported_devices() if group.get("capturable") else None
        if devices is not None and not all(param.device.type in devices for param in params):
            raise AssertionError(f"If capturable=True, params and state_steps must be on supported devices: {devices}.")
        if group.get("fused"):
            supported = _get_fused_kernels_supported_devices()
            for param in params:
                if not (param.is_floating_point() and param.device.type in supported):
                    raise RuntimeError(
                        "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                        f"{supported} but {param.dtype} and {param.device.type}"
                    )
            for rows in self._kinds(params, grads, states):
                columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
                self.move_fused(columns[0], columns[1], columns[2], group)
            return
        turns = group.get("maximize")
        if not group.get("foreach"):
            for param, grad, state in zip(params, grads, states, strict=True):
                self.update(param, -grad if turns and not self._counts_first[0] else grad, state, group)
            return
        if group.get("differentiable"):
            raise AssertionError("_foreach ops don't support autograd")
        for rows in self._kinds(params, grads, states):
            own = [state for _, _, state in rows]
            state = {name: Many(one.get(name) for one in own) for name in dict.fromkeys(chain.from_iterable(own))}
            grad = Many(grad for _, grad, _ in rows)
            grad = grad.neg() if turns and not self._counts_first[1] else grad
            self.update(Many(param for param, _, _ in rows), grad, state, group)
            for name, values in state.items():
                for one, value in zip(own, values, strict=True):
                    one[name] = value

    def _kinds(self, *columns: list[Any]) -> Iterable[list[Any]]:
        """(parameter, gradient, state) of those that may be moved together: of one device, dtype and `_kind`."""
        kinds: dict[Any, list[Any]] = {}
        for row in zip(*columns, strict=True):
            kinds.setdefault((row[0].device, row[0].dtype, self._kind(row[0])), []).append(row)
        return kinds.values()

    def move_fused(self, params: list[Any], grads: list[Any], states: list[dict[str, Any]], group: Group) -> None:
        """Moves parameters of one kind by one operator."""
        raise NotImplementedError(f"{type(self).__name__} has no operator for a step")

    def by_operator(
        self, name: str, params: list[Any], grads: list[Any], states: list[dict[str, Any]], kept: str, options: Group
    ) -> None:
        """Calls an operator that moves parameters of one kind, with what the state keeps under these names."""
        lists = [[state[one] for state in states if one in state] for one in kept.split()]
        scale, found = getattr(self, "grad_scale", None), getattr(self, "found_inf", None)
        counts = lists[-1] if kept.endswith("step") else None
        alone = unseen(())  # then no mode misses the function, which costs more than the operator by its name
        if counts is not None:
            (ops.aten._foreach_add_.Scalar if alone else redispatch._foreach_add_)(counts, 1)
        update = operator(name) if alone and not isinstance(options["lr"], Tensor) else function(name)
        update(params, grads, *lists, **options, grad_scale=scale, found_inf=found)
        if counts is not None and found is not None:
            redispatch._foreach_sub_(counts, [found] * len(counts))

    # Whether `update` itself turns the gradient for `maximize`, after its count of steps: of one parameter, of many.
    _counts_first = (False, False)

    def _kind(self, param: Any) -> Any:
        """Returns a key that parameters of one dtype and device must share, to be moved together."""

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        """Moves one parameter, in place. `grad` points uphill; it is the parameter's own and must not be written to.

        With `foreach`, both are `Many`, and so is each value of the state.
        """
        raise NotImplementedError(f"{type(self).__name__} gives neither update() nor step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients of all parameters away, or fills them with zeros."""
        with labelled(self, "zero_grad"):
            for group in self.param_groups:
                for param in group["params"]:
                    clear_grad(param, set_to_none)

    # Saving and loading ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with numbers, from group to group, in the place of parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        numbers: dict[Any, int] = {}
        for number, param in enumerate(params):
            numbers.setdefault(param, number)
        saved: dict[str, Any] = {
            "state": {numbers[key] if isinstance(key, Tensor) else key: value for key, value in self.state.items()},
            "param_groups": [
                {
                    **{key: value for key, value in group.items() if key != "params"},
                    "params": [numbers[p] for p in group["params"]],
                }
                for group in self.param_groups
            ],
        }
        for hook in self._optimizer_state_dict_post_hooks.values():
            saved = hook(self, saved) or saved
        return saved

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over options and state from another optimizer's `state_dict()`.

        State goes to the parameter in the same place; its tensors are copied, to the parameter's dtype and device, so
        that the two optimizers go on apart. (PyTorch's share those that fit already.)
        Errors: ValueError for another number of groups, or of parameters in a group.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            state_dict = hook(self, state_dict) or state_dict
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        matched = list(zip(self.param_groups, saved_groups, strict=True))
        if any(len(group["params"]) != len(saved["params"]) for group, saved in matched):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = {
            number: param
            for group, saved in matched
            for number, param in zip(saved["params"], group["params"], strict=True)
        }
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in params:
                state[params[number]] = fitted(value, params[number])
            else:
                state[number] = value
        for group, saved in matched:
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for group in self.param_groups:  # an older version may not have known an option
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = []
        for number, group in enumerate(self.param_groups):
            options = (f"    {name}: {group[name]}" for name in sorted(group) if name != "params")
            lines += [f"\nParameter Group {number}", *options]
        return f"{type(self).__name__} ({chr(10).join(lines)}\n)"

    # Hooks ----------------------------------------------------------------------------------------------------

    # What optimizers of other packages call: nothing here is recorded for a GPU, or wrapped by a profiler.

    def _cuda_graph_capture_health_check(self) -> None:
        """Does nothing."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check
    _patch_step_function = _optimizer_step_code = _cuda_graph_capture_health_check

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Returns the step as it is: every class's own is called with hooks already."""
        return func

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: Any, with_indices: bool = False
    ) -> dict[tuple[Any, Any], tuple[Any, Any]]:
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _make_hooks(self) -> None:
        self._optimizer_step_pre_hooks: Hooks = OrderedDict()
        self._optimizer_step_post_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: Hooks = OrderedDict()

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before a step; a pair that it returns replaces the arguments."""
        return registered(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after a step."""
        return registered(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` before the state is saved."""
        return registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` after the state was saved; a dictionary that it returns replaces it."""
        return registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)` before state is loaded; a dictionary that it returns replaces it."""
        return registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(optimizer)` after state was loaded."""
        return registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """An optimizer's `step` with the hooks around it."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if unseen(()):
            return with_its_hooks(self, *args, **kwargs)
        with labelled(self, "step"):
            return with_its_hooks(self, *args, **kwargs)

    def with_its_hooks(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        own = vars(self)  # of a wrapper whose `__init__` called none there are no hooks
        for hook in chain(_PRE_HOOKS.values(), own.get("_optimizer_step_pre_hooks", {}).values()):
            changed = hook(self, args, kwargs)
            if changed is not None:
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                args, kwargs = changed
        result = step(self, *args, **kwargs)
        self._opt_called = True  # type: ignore[attr-defined]  # lr_scheduler.py asks whether there was a step yet
        for hook in chain(own.get("_optimizer_step_post_hooks", {}).values(), _POST_HOOKS.values()):
            hook(self, args, kwargs)
        return result

    hooked.hooked = True  # type: ignore[attr-defined]  # a scheduler warns where another function took its place
    return hooked


def labelled(optimizer: Any, method: str) -> Any:
    """Returns a region in which PyTorch's profiler and modes see what an optimizer does under its name."""
    if unseen(()):
        return nullcontext()
    return redispatch.profiler.record_function(f"Optimizer.{method}#{type(optimizer).__name__}.{method}")


_PRE_HOOKS: Hooks = OrderedDict()  # those of all optimizers
_POST_HOOKS: Hooks = OrderedDict()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` before a step of any optimizer; a pair that it returns replaces these."""
    return registered(_PRE_HOOKS, hook)


def register_optimizer_step_post_hook(hook: Callable[..., None]) -> RemovableHandle:
    """Calls `hook(optimizer, args, kwargs)` after a step of any optimizer."""
    return registered(_POST_HOOKS, hook)


Optimizer.step = with_hooks(Optimizer.step)  # type: ignore[method-assign]  # attached here


def split_names(params: Any) -> tuple[list[Any], list[Any]]:
    """The names, if they are pairs (name, tensor), and the tensors.

    Errors: TypeError for a set, which has no order that a checkpoint could rely on; ValueError where some have names.
    """
    if isinstance(params, Tensor):
        return [], [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = list(params)
    names = [item[0] for item in listed if isinstance(item, tuple)]
    if names and len(names) != len(listed):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return names, [item[1] if isinstance(item, tuple) else item for item in listed]


def fitted(value: Any, param: Any, name: str | None = None) -> Any:
    """A value of the state, copied, its tensors of the dtype and on the device of `param`. A count of steps stays."""
    if isinstance(value, Tensor):
        if name == "step":
            return value.clone()
        dtype = param.dtype if param.is_floating_point() else value.dtype
        return value.to(device=param.device, dtype=dtype, copy=True)
    if isinstance(value, dict):
        return {key: fitted(item, param, key) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(fitted(item, param) for item in value)  # type: ignore[call-arg]  # of the right type, which mypy cannot tell
    return value


def number(value: Any) -> float:
    """An option as a Python number: a learning rate may be a tensor of one element."""
    return value.item() if isinstance(value, Tensor) else value


CALLED = {"lr": "learning rate", "eps": "epsilon value"}  # in errors


def options(scope: dict[str, Any], *checks: str) -> Group:
    """Returns the arguments of an optimizer's `__init__` but the parameters, from its `locals()`: its options.

    checks: which of them must not be negative, or NaN; betas must be in [0, 1), a learning rate be one element.
    Errors: ValueError.
    """
    chosen = {name: value for name, value in scope.items() if name not in ("self", "params", "__class__")}
    if chosen.get("fused"):
        if chosen["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if chosen["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    for name in checks:
        value = chosen[name]
        if name == "betas":
            for index, beta in enumerate(value):
                if not 0 <= beta < 1:
                    raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
            continue
        if name == "lr" and isinstance(value, Tensor) and value.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not value >= 0:
            raise ValueError(f"Invalid {CALLED.get(name, f'{name} value')}: {value}")
    return chosen


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """Returns a function of the package, most of which are made when they are first looked for."""
    return getattr(redispatch, name)


@functools.cache
def operator(name: str) -> Callable[..., Any]:
    """Returns the operator of a function of the package, for a learning rate that is a number."""
    return getattr(ops.aten, name).default


class Many(list[Any]):
    """Tensors that are moved together: a method is an operator on lists, `x.mul_(2)` is `_foreach_mul_(x, 2)`."""

    def __getattr__(self, name: str) -> Callable[..., Many]:
        on_lists = function(f"_foreach_{name}")

        def method(*args: Any, value: Any = None, **kwargs: Any) -> Many:
            result = on_lists(self, *args, *(() if value is None else (value,)), **kwargs)
            return self if result is self else Many(result)

        return method


def read(step: Any) -> Any:
    """The number in a count of steps; counts of many are read where they are used, by `at`."""
    return step if isinstance(step, Many) else step.item()


def at(t: Any, function: Callable[..., Any], *others: Any) -> Any:
    """Returns what a function makes of a number; of many, and the lists `others` along with them, in a list."""
    if not isinstance(t, Many):
        return function(t, *others)
    return [function(_get_value(one), *rest) for one, *rest in zip(t, *others, strict=True)]


def put(x: Any, mask: Any, value: float) -> None:
    """Sets elements: as PyTorch does where that is seen, else by the operator that takes less time."""
    if unseen((type(x),)):
        x.masked_fill_(mask, value)
    else:
        x[mask] = value


def largest_in(x: Any, other: Any) -> Any:
    """Writes the larger of two elements into `x`."""
    if unseen((type(x),)):
        return x.copy_(arithmetic.maximum(x, other))
    return arithmetic.maximum(x, other, out=x)


class Formula(Optimizer):
    """An optimizer that is a formula for one parameter, or for many: its state and the count of steps are done here.

    _buffers: the names of its state, tensors like the parameter that start as zeros.
    """

    _buffers: tuple[str, ...] = ()

    def _start(self, param: Any, state: dict[str, Any], group: Group) -> None:
        begin(param, state, group, *self._buffers)

    def update(self, param: Any, grad: Any, state: dict[str, Any], group: Group) -> None:
        if not state:
            self._start(param, state, group)
        if isinstance(param, Many):
            state["step"].add_(from_data.tensor(1.0), alpha=1.0)
        else:
            state["step"] += 1
        if (param[0] if isinstance(param, Many) else param).is_complex():
            param, grad = in_pairs(param), in_pairs(grad)
            state = {name: in_pairs(value) for name, value in state.items()}
        self._move(param, grad, state, group, _to_scalar(group.get("lr")), state["step"])

    def _move(self, param: Any, grad: Any, state: dict[str, Any], group: Group, lr: Any, step: Any) -> None:
        """Moves the parameter. The step is counted already; `grad` has no weight decay yet, and is not written to."""
        raise NotImplementedError


def in_pairs(value: Any) -> Any:
    """Complex tensors as pairs of real numbers, which all but the decay takes as numbers of their own."""
    if isinstance(value, Many):
        return Many(in_pairs(one) for one in value)
    return ops.aten.view_as_real.default(value) if isinstance(value, Tensor) and value.is_complex() else value


def decayed(param: Any, grad: Any, group: Group, lr: Any = None) -> Any:
    """Returns the gradient with the weight decay; one that is decoupled shrinks the parameter instead."""
    decay = group["weight_decay"]
    if decay == 0:
        return grad
    if group.get("decoupled_weight_decay"):
        param.mul_(1 - lr * decay)
        return grad
    return (grad.add_ if owns(grad, group, decay=False) else grad.add)(param, alpha=decay)


def owns(grad: Any, group: Group, decay: bool = True) -> bool:
    """Whether a gradient of many is no longer that of the parameters, so that it may be written to."""
    return isinstance(grad, Many) and bool(group.get("maximize") or decay and group["weight_decay"] != 0)


def begin(
    param: Any, state: dict[str, Any], group: Group, *names: str, counted_in: Callable[..., Any] | None = None
) -> None:
    """The state before the first step: a count of steps and, under each name, zeros like the parameter.

    counted_in: what makes the count, where PyTorch does not make it of data.
    """
    # A tensor, so that checkpoints go between this and PyTorch; on the CPU, since its value is read in every step.
    if group.get("capturable") or group.get("fused"):
        state["step"] = creation.zeros((), dtype=_get_scalar_dtype(group.get("fused")), device=param.device)
    elif counted_in is not None:
        state["step"] = counted_in((), dtype=_get_scalar_dtype())
    else:
        state["step"] = from_data.tensor(0.0, dtype=_get_scalar_dtype())
    for name in names:
        state[name] = zeros_like(param)


def zeros_like(param: Any) -> Any:
    return creation.zeros_like(param, memory_format=preserve_format)


# --- PyTorch's helpers, which optimizers of other packages import -----------------------------------------------------

ParamsT = Iterable[Any]


def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """Returns `step` as it runs with gradients where the optimizer is `differentiable`, and without elsewhere."""

    @functools.wraps(step)
    def under(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return under


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Returns a decorator that changes nothing: nothing traces programs."""
    return lambda function: function


def _default_to_fused_or_foreach(params: list[Any], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Returns whether to take fused kernels, and those for lists, which PyTorch chooses for other devices alone."""
    fits = all(param is None or param.is_floating_point() for param in params)
    return use_fused and fits and not differentiable, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    return ["cuda", "xpu", "hpu", TYPE_NAMED["privateuseone"], *(["xla"] if supports_xla else ())]


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Returns the dtype of a count of steps."""
    return dtypes.float64 if dtypes.get_default_dtype() == dtypes.float64 and not is_fused else dtypes.float32


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Puts pairs of real numbers in the places of the complex parameters in a list, and of what belongs to them."""
    for index, param in enumerate(params):
        if param.is_complex():
            for one in (params, *state_and_grads):
                one[index] = ops.aten.view_as_real.default(one[index])
