"""Hooks around a module's forward: what runs before it, after it, and, in backward, around its gradients.

The order of one call is told in `call_with_hooks`. The hooks of backward need to see the gradients of the module's
inputs and outputs together, and no node of the graph stands for a whole module. So both its inputs and its outputs
pass through a node that changes nothing (`BackwardHookFunction`), and the hooks hang there.

Read next: module.py.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from redispatch.autograd import Function, RemovableHandle, is_grad_enabled
from redispatch.dispatch import STATE
from redispatch.dispatch.tensor import Tensor
from redispatch.dispatch.tensor.wrapped import Wrapped

from .tree import BUFFER, MODULE, ON_REGISTRATION, PARAMETER, Kind


class ForwardHook(NamedTuple):
    """A hook before or after forward, and how it wants to be called.

    A module's tables hold the functions alone, as programs that look through them expect.
    """

    function: Callable[..., Any]
    with_kwargs: bool = False
    always_call: bool = False  # when forward raises, too

    def before(
        self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments for forward."""
        if not self.with_kwargs:
            changed = self.function(module, args)
            if changed is None:
                return args, kwargs
            return changed if isinstance(changed, tuple) else (changed,), kwargs
        changed = self.function(module, args, kwargs)
        if changed is None:
            return args, kwargs
        if not (isinstance(changed, tuple) and len(changed) == 2):
            raise RuntimeError(
                f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
            )
        return changed

    def after(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Any:
        """The result of the call."""
        given = (args, kwargs, result) if self.with_kwargs else (args, result)
        changed = self.function(module, *given)
        return result if changed is None else changed


# --- hooks of all modules --------------------------------------------------------------------------------------------


class Everywhere(NamedTuple):
    """A hook of all modules: which of a module's tables it stands before, and as what it would be there."""

    table: str
    hook: Any


EVERYWHERE: OrderedDict[int, Everywhere] = OrderedDict()  # by the number of the handle that takes it away again


def registered_everywhere(table: str, hook: Any) -> RemovableHandle:
    handle = RemovableHandle(EVERYWHERE)
    EVERYWHERE[handle.id] = Everywhere(table, hook)
    return handle


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, args)` before the forward of every module, before the module's own hooks."""
    return registered_everywhere("_forward_pre_hooks", ForwardHook(hook))


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Calls `hook(module, args, result)` after the forward of every module, before the module's own hooks."""
    return registered_everywhere("_forward_hooks", ForwardHook(hook, with_kwargs, always_call))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_output)` before backward enters any module."""
    return registered_everywhere("_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are there."""
    check_one_kind_everywhere(old=False)
    return registered_everywhere("_backward_hooks", hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(module, grad_input, grad_output)`, of the older kind, in the backward of every module."""
    check_one_kind_everywhere(old=True)
    return registered_everywhere("_backward_hooks", NodeHook(hook))


def check_one_kind_everywhere(old: bool) -> None:
    """RuntimeError where all modules have backward hooks of the other kind."""
    hooks = [each.hook for each in EVERYWHERE.values() if each.table == "_backward_hooks"]
    if any((type(hook) is NodeHook) != old for hook in hooks):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )


def on_registration(kind: Kind) -> Callable[[Callable[..., Any]], RemovableHandle]:
    """Returns the function that adds a hook for what modules file of a kind."""

    def register(hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(module, name, value)` when any module files such a value, and files what it returns."""
        handle = RemovableHandle(ON_REGISTRATION[kind.store])
        ON_REGISTRATION[kind.store][handle.id] = hook
        return handle

    register.__name__ = register.__qualname__ = f"register_module_{kind.store[1:-1]}_registration_hook"
    return register


register_module_parameter_registration_hook = on_registration(PARAMETER)
register_module_module_registration_hook = on_registration(MODULE)
register_module_buffer_registration_hook = on_registration(BUFFER)


def hooks_of(module: Any, table: str) -> dict[int, Any]:
    """Returns the hooks of all modules, then the module's own."""
    everywhere = {number: each.hook for number, each in EVERYWHERE.items() if each.table == table}
    return {**everywhere, **getattr(module, table)}


def forward_pre_hooks(module: Any) -> dict[int, ForwardHook]:
    """Returns the hooks of all modules, then the module's own, each with how it is called."""
    with_kwargs = module._forward_pre_hooks_with_kwargs
    hooks = hooks_of(module, "_forward_pre_hooks")
    own = {number: ForwardHook(hooks[number], number in with_kwargs) for number in module._forward_pre_hooks}
    return hooks | own


def forward_hooks(module: Any) -> dict[int, ForwardHook]:
    """Returns the hooks after forward: of all modules, then the module's own."""
    with_kwargs, always = module._forward_hooks_with_kwargs, module._forward_hooks_always_called
    hooks = hooks_of(module, "_forward_hooks")
    own = {n: ForwardHook(hooks[n], n in with_kwargs, n in always) for n in module._forward_hooks}
    return hooks | own


# --- one call --------------------------------------------------------------------------------------------------------


class NodeHook:
    """A hook of the older kind: called at the node of the module's first result, with what that node is about.

    It sees the gradients of the last operator's inputs, which are the module's only where it is a single operator.
    """

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def attach(self, module: Any, result: Any) -> None:
        while not isinstance(result, Tensor):
            if isinstance(result, dict):
                result = next((value for value in result.values() if isinstance(value, Tensor)), None)
            elif isinstance(result, tuple | list) and result:
                result = result[0]
            else:
                return
        if result is not None and result.grad_fn is not None:
            result.grad_fn.register_hook(lambda gradients, given: self.hook(module, gradients, given))


def check_one_kind(module: Any, kind: type) -> None:
    """RuntimeError where the module has backward hooks of the other kind."""
    if any((type(hook) is NodeHook) != (kind is NodeHook) for hook in module._backward_hooks.values()):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
            "them."
        )


def call_with_hooks(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`module.forward(*args, **kwargs)` with all hooks around it."""
    called = set()
    result = None
    try:
        # 1. What runs before forward, and may change its arguments.
        for hook in forward_pre_hooks(module).values():
            args, kwargs = hook.before(module, args, kwargs)
        # 2. From here on, backward passes through our identities.
        backward = None
        backward_hooks, backward_pre_hooks = (
            hooks_of(module, "_backward_hooks"),
            hooks_of(module, "_backward_pre_hooks"),
        )
        node_hooks = [hook for hook in backward_hooks.values() if isinstance(hook, NodeHook)]
        full_hooks = [hook for hook in backward_hooks.values() if not isinstance(hook, NodeHook)]
        if full_hooks or backward_pre_hooks:
            backward = BackwardHooks(module, full_hooks, list(backward_pre_hooks.values()))
            args = backward.around_inputs(args)
        # 3. The module itself.
        result = module.forward(*args, **kwargs)
        # 4. What runs after it, and may change its result.
        for number, hook in forward_hooks(module).items():
            called.add(number)
            result = hook.after(module, args, kwargs, result)
        if backward is not None:
            result = backward.around_outputs(result)
        for node_hook in node_hooks:
            node_hook.attach(module, result)
        return result
    except Exception:
        # 5. Where something raised: those which are called always. What they raise must not hide the first error.
        for number, hook in forward_hooks(module).items():
            if hook.always_call and number not in called:
                try:
                    result = hook.after(module, args, kwargs, result)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=2,
                    )
        raise


class BackwardHookFunction(Function):
    """Tensors as they are, with a node of their own."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return gradients


class PassedBack(Function):
    """Tensors as they are, whose gradients pass through `change`; used under transforms, each of which has a node."""

    generate_vmap_rule = True

    @staticmethod
    def forward(change: Any, *tensors: Any) -> Any:
        return tensors

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.change = inputs[0]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return (None, *ctx.change(gradients))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> Any:
        return tuple(None if tangent is None else tangent.view_as(tangent) for tangent in tangents)


def is_wanted(tensor: Any) -> bool:
    """Whether the gradient of a tensor is wanted, here or by a transform outside of one."""
    return tensor.requires_grad or isinstance(tensor, Wrapped) and is_wanted(tensor._value)


class BackwardHooks:
    """One call's backward hooks: keeps the gradients of the outputs until those of the inputs are there."""

    def __init__(self, module: Any, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.input_count = 0
        self.inputs_differ = False  # whether any input has a gradient

    def around_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, their tensors passed through an identity at which the hooks are called."""
        self.input_count = len(args)

        def inputs_are_done(grad_inputs: Any, places: list[int]) -> Any:
            if self.grad_outputs is None:  # the outputs took no part in this backward
                return grad_inputs
            full = spread(grad_inputs, places, self.input_count)
            for hook in self.hooks:
                full = changed_by(hook(self.module, full, self.grad_outputs), full, "grad_input")
            self.grad_outputs = None
            return tuple(full[place] for place in places)

        passed, self.inputs_differ = through_identity(args, inputs_are_done)
        return passed

    def around_outputs(self, result: Any) -> Any:
        """The result, its tensors passed through an identity at which the pre-hooks are called."""
        if not isinstance(result, Tensor | tuple):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=3,
            )
            return result
        results = result if isinstance(result, tuple) else (result,)

        def outputs_are_done(gradients: Any, places: list[int]) -> Any:
            full = spread(gradients, places, len(results))
            for hook in self.pre_hooks:
                full = changed_by(hook(self.module, full), full, "grad_output")
            self.grad_outputs = full
            if not self.inputs_differ:
                self._call_without_inputs(full)
            return tuple(full[place] for place in places)

        passed, _ = through_identity(results, outputs_are_done, before=True)
        return passed if isinstance(result, tuple) else passed[0]

    def _call_without_inputs(self, grad_outputs: tuple[Any, ...]) -> None:
        """Calls the hooks of a module no input of which has a gradient: nothing will arrive at the inputs."""
        nothing = (None,) * self.input_count
        for hook in self.hooks:
            changed = hook(self.module, nothing, grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(item is None for item in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None


def through_identity(
    values: tuple[Any, ...], change: Callable[[Any, list[int]], Any], before: bool = False
) -> tuple[tuple[Any, ...], bool]:
    """The values with their tensors passed through one identity; whether one of them has a gradient.

    change: (gradients, the places of the tensors) -> gradients; called `before` the node runs, or after.
    """
    places = [place for place, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = [values[place] for place in places]
    if not is_grad_enabled() or not any(map(is_wanted, tensors)):
        return values, False
    if STATE.get().levels:
        outputs = PassedBack.apply(lambda gradients: change(gradients, places), *tensors)
    else:
        outputs = BackwardHookFunction.apply(*tensors)
        node = next(output.grad_fn for output in outputs if output.grad_fn is not None)
        if before:
            node.register_prehook(lambda gradients: change(gradients, places))
        else:
            node.register_hook(lambda gradients, _: change(gradients, places))
    passed = list(values)
    for place, output in zip(places, outputs, strict=True):
        passed[place] = output
    kind = type(values)
    return kind(*passed) if hasattr(kind, "_fields") else tuple(passed), True


def spread(gradients: Sequence[Any], places: list[int], count: int) -> tuple[Any, ...]:
    """`count` values: the gradients at their places, None elsewhere."""
    full = [None] * count
    for place, gradient in zip(places, gradients, strict=True):
        full[place] = gradient
    return tuple(full)


def changed_by(changed: Any, gradients: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    """The gradients after a hook. RuntimeError where it gave another number of them."""
    if changed is None:
        return gradients
    changed = changed if isinstance(changed, tuple) else (changed,)
    if len(changed) != len(gradients):
        raise RuntimeError(
            f"Backward hook returned an invalid number of {what}, got {len(changed)}, but expected {len(gradients)}"
        )
    return changed
