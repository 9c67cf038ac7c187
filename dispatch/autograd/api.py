"""The functions that users call: `backward`, `grad`, and the methods of Tensor that belong to autograd.

Read next: grad_mode.py, function.py, graph.py.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from redispatch.dispatch import STATE, handle_torch_function, overridden, overrides, wants_gradient
from redispatch.dispatch.errors import WARNED
from redispatch.dispatch.inspection.origins import telling_origin
from redispatch.dispatch.tensor import (
    SET_REQUIRES_GRAD,
    AutogradRecord,
    Tensor,
    dtypes,
    overridable,
    overridable_in_python,
    overridable_property,
)

from .accumulate import hooks_of_leaf
from .engine import Target, run_announced, run_backward
from .history import gradient_edge
from .hooks import WATCH, HookDict, RemovableHandle
from .node import BATCHED, ONES_LIKE, ZEROS, Node
from .views import current_grad_fn


class GradientEdge(NamedTuple):
    """A place in the graph: `backward` and `grad` take it where they take a tensor."""

    node: Node
    output_nr: int
    ownership_token: Any = None


Place = Tensor | GradientEdge

# --- backward and grad ------------------------------------------------------------------------------------------------


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Adds the gradients of `tensors` to the `.grad` of the leaves that they were computed from. Not under a transform.

    tensors: a tensor, a GradientEdge or a sequence of them; grad_tensors: their gradients, which scalars may omit.
    inputs: where to accumulate; by default in every leaf.
    Errors: RuntimeError where a tensor does not require grad, a gradient is missing or does not fit, or what the graph
    had saved was let go or overwritten.
    """
    refuse_under_transforms()
    if create_graph and inputs is None:
        warn_of_cycles()
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                "only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    outputs = as_places(tensors)
    if overridden(outputs, {}):
        return handle_torch_function(
            backward,
            outputs,
            outputs,
            grad_tensors=grad_tensors,
            retain_graph=retain_graph,
            create_graph=create_graph,
            inputs=inputs,
        )
    if inputs is not None:
        inputs = as_places(inputs)
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    gradients = first_gradients(outputs, grad_tensors)
    targets = [target_edge(place, accumulate=True) for place in inputs or ()]
    run = run_announced if WATCH.on else run_backward
    run(
        [root_edge(index, output) for index, output in enumerate(outputs)],
        gradients,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        targets=targets,
        accumulate=True,
    )
    return None


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs`, summed, with respect to `inputs`: a tuple, or a dict for a dict of inputs.

    grad_outputs: the gradients of the outputs, which scalars may omit. An input that was not used is an error, or
    gives None with `allow_unused`, zeros with `materialize_grads`.

    >>> import redispatch as rd
    >>> x = rd.tensor(3.0, requires_grad=True)
    >>> rd.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    check_grad_arguments(inputs, allow_unused, materialize_grads)
    places, sources = as_places(outputs), as_places(inputs.values() if type(inputs) is dict else inputs)
    if not sources:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    options = {
        "grad_outputs": grad_outputs,
        "retain_graph": retain_graph,
        "create_graph": create_graph,
        "only_inputs": only_inputs,
        "allow_unused": allow_unused,
        "is_grads_batched": is_grads_batched,
        "materialize_grads": materialize_grads,
    }
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if overridden((*places, *sources), {}):
        found = handle_torch_function(grad, (*places, *sources), places, sources, **options)
        return dict(zip(inputs, found, strict=True)) if type(inputs) is dict else found
    if is_grads_batched:
        found = grads_of_a_batch(places, sources, options)
        settle_unused(found, sources, allow_unused, materialize_grads, create_graph)
        return dict(zip(inputs, found, strict=True)) if type(inputs) is dict else tuple(found)
    gradients = first_gradients(places, grad_outputs)
    run = run_announced if WATCH.on else run_backward
    found = run(
        [root_edge(index, place) for index, place in enumerate(places)],
        gradients,
        retain_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        targets=[target_edge(source) for source in sources],
    )
    settle_unused(found, sources, allow_unused, materialize_grads, create_graph)
    return dict(zip(inputs, found, strict=True)) if type(inputs) is dict else tuple(found)


def check_grad_arguments(inputs: Any, allow_unused: bool | None, materialize_grads: bool) -> None:
    """Errors: ValueError for options that do not go together; TypeError for a mapping of inputs that is no dict."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if type(inputs) is not dict and not isinstance(inputs, Tensor) and isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `grad()` must be a dict, not {type(inputs).__name__}. Other Mapping types are not "
            "supported."
        )


def settle_unused(
    found: list[Any], sources: Sequence[Place], allow_unused: bool | None, materialize: bool, create_graph: bool
) -> None:
    """Puts zeros in the place of gradients that there are not, if asked to. RuntimeError where there must be one."""
    for index, (source, gradient) in enumerate(zip(sources, found, strict=True)):
        if gradient is not None:
            continue
        if materialize:
            if isinstance(source, GradientEdge):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            found[index] = source.new_zeros(source._shape).requires_grad_(create_graph)
        elif not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )


def warn_of_cycles() -> None:
    """Says what becomes of a leaf whose `.grad` has a history that leads to the leaf."""
    if not WARNED.of_cycles or WARNED.always:
        WARNED.of_cycles = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            stacklevel=4,
        )


def refuse_under_transforms() -> None:
    if STATE.get().levels:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or "
            "functorch.vjp instead or call backward() outside of functorch transforms."
        )


def grads_of_a_batch(places: Sequence[Place], sources: Sequence[Place], options: dict[str, Any]) -> list[Any]:
    """`grad` where each of the `grad_outputs` is a batch of gradients, along dimension 0; and so are the results.

    Errors: ValueError where there is no batch; RuntimeError for one that does not fit.
    """
    given = options["grad_outputs"]
    if given is None:
        raise ValueError(
            "grad() with is_grads_batched=True got no grad_outputs: pass, for each output, a batch of gradients along "
            "dimension 0"
        )
    given = (given,) if isinstance(given, Tensor) else tuple(given)
    for index, (gradient, place) in enumerate(zip(given, places, strict=False)):
        if gradient is not None and isinstance(place, Tensor) and gradient._shape[1:] != place._shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{index}] has a shape of {gradient._shape} and "
                f"output[{index}] has a shape of {place._shape}. If you only want some tensors in `grad_output` to be "
                "considered batched, consider using vmap."
            )
    single = {**options, "is_grads_batched": False, "allow_unused": True, "materialize_grads": False}
    whole = [place for place, gradient in enumerate(given) if gradient is not None]

    def of_one(*batch: Any) -> Any:
        seeds: list[Any] = [None] * len(given)
        for place, gradient in zip(whole, batch, strict=True):
            seeds[place] = gradient
        return grad(places, sources, **{**single, "grad_outputs": seeds})

    return list(BATCHED()(of_one, tuple(given[place] for place in whole)))


def as_places(value: Any) -> tuple[Any, ...]:
    """One place or several as a tuple. What has a `__torch_function__` is taken for a tensor: it will be asked."""
    return (value,) if isinstance(value, (Tensor, GradientEdge)) or overrides(value) else tuple(value)


def root_edge(index: int, place: Place) -> Target:
    """The edge at which backward begins. RuntimeError for a tensor of which nothing was recorded."""
    if isinstance(place, GradientEdge):
        return place.node, place.output_nr
    edge = gradient_edge(place)
    if edge is None:
        raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    return edge


def target_edge(place: Place, accumulate: bool = False) -> Target:
    """The edge at which a gradient that is asked for arrives. RuntimeError for a tensor that does not require grad."""
    if isinstance(place, GradientEdge):
        return place.node, place.output_nr
    edge = gradient_edge(place)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    if accumulate and current_grad_fn(place) is not None:
        retain_grad(place)
    return edge


def first_gradients(outputs: Sequence[Place], gradients: Any) -> list[Any]:
    """The gradients from which backward starts, checked; ones for scalars without. Errors: as in `backward`."""
    if gradients is None:
        gradients = (None,) * len(outputs)
    elif isinstance(gradients, Tensor):
        gradients = (gradients,)
    else:
        gradients = tuple(gradients)
    if len(gradients) < len(outputs):  # those too many are ignored, as PyTorch does
        raise RuntimeError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    return [first_gradient(i, out, given) for i, (out, given) in enumerate(zip(outputs, gradients, strict=False))]


def first_gradient(index: int, output: Place, given: Any) -> Any:
    if given is None and type(output) is Tensor and not output._shape and output._dtype.category == dtypes.FLOATING:
        return ONES_LIKE()(output) if wants_gradient(output) else None  # a loss, as nearly always
    if isinstance(output, GradientEdge):
        metadata: Any = output.node.outputs[output.output_nr]  # an output that has an edge has metadata
        shape, dtype, device = metadata.shape, metadata.dtype, metadata.device
    else:
        shape, dtype, device = output._shape, output._dtype, output._device
    if given is None:
        if isinstance(output, Tensor) and not wants_gradient(output):
            return None
        if shape.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not dtype.is_floating_point:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
        return ONES_LIKE()(ZEROS()(shape, dtype, device) if isinstance(output, GradientEdge) else output)
    if not isinstance(given, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
    if given._shape != shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{index}] has a shape of {given._shape} and output[{index}] has a shape of "
            f"{shape}."
        )
    if given._dtype.is_complex != dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output[{index}] has a dtype of {given._dtype} and output[{index}] has a dtype of {dtype}."
        )
    return given if given._dtype is dtype else given.to(dtype)


# --- methods of Tensor ------------------------------------------------------------------------------------------------


@overridable_in_python
def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradient of this tensor to the `.grad` of the leaves that it was computed from.

    >>> import redispatch as rd
    >>> x = rd.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    refuse_under_transforms()
    if inputs is not None or not (gradient is None or isinstance(gradient, Tensor)):
        return backward(self, gradient, retain_graph, create_graph, inputs=inputs)
    if create_graph:
        warn_of_cycles()
    first = first_gradient(0, self, gradient)
    retain_graph = create_graph if retain_graph is None else retain_graph
    run = run_announced if WATCH.on else run_backward
    run([root_edge(0, self)], [first], retain_graph=retain_graph, create_graph=create_graph)
    return None


def set_requires_grad(
    tensor: Tensor, value: Any, allowed: str = "Only Tensors of floating point and complex dtype"
) -> None:
    """Sets whether gradients are wanted. RuntimeError for a tensor that cannot have any, or was computed."""
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    record = tensor._autograd
    if record is not None and current_grad_fn(tensor) is not None:
        if value:
            return
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if value and tensor._dtype.category < 2:
        raise RuntimeError(f"{allowed} can require gradients")
    if value and tensor._counter is None and not STATE.get().inference:
        text = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        raise telling_origin(RuntimeError(text), tensor=tensor)
    if record is None:
        if not value:
            return
        tensor._autograd = record = AutogradRecord()
    record.requires_grad = value


@overridable
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Sets whether gradients are wanted, and returns the tensor. RuntimeError under a transform."""
    if STATE.get().levels and not STATE.get().innermost.allows_requires_grad:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
            "inside of a function being transformed by a functorch transform. This is unsupported, please attempt to "
            "use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."
        )
    set_requires_grad(self, requires_grad, allowed="only Tensors of floating point dtype")
    return self


@overridable_in_python
def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Calls `hook(grad)` whenever the tensor's gradient is computed; what it returns replaces the gradient.

    >>> import redispatch as rd
    >>> x = rd.ones(2, requires_grad=True)
    >>> _ = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    record = self._autograd
    if record is None or not record.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = current_grad_fn(self)
    hooks: Any = record.hooks
    if hooks is None:
        record.hooks = hooks = HookDict()
    of_node = node._hooks() if node is not None else hooks_of_leaf(self)
    if of_node is not None:
        of_node.of_tensors[record.output_nr] = hooks
    return hooks.register(hook)


@overridable_in_python
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Any], None]) -> RemovableHandle:
    """Calls `hook(tensor)` after a leaf's gradient was added to `.grad`."""
    record = self._autograd
    if record is None or not record.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if current_grad_fn(self) is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks: Any = record.post_accumulate_hooks
    if hooks is None:
        record.post_accumulate_hooks = hooks = HookDict()
    return hooks.register(hook)


@overridable
def retain_grad(self: Tensor) -> None:
    """Has backward keep the gradient of this tensor in `.grad`, though it is no leaf."""
    record = self._autograd
    if record is None or not record.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = current_grad_fn(self)
    if node is None or record.retains_grad is not None:
        return
    weak = weakref.ref(self)  # the node must not keep its own result alive

    def retain(gradient: Any) -> None:
        tensor = weak()
        if tensor is not None:
            kept: Any = tensor._autograd
            kept.grad = gradient.clone() if kept.grad is None else kept.grad + gradient

    record.retains_grad = retain
    node._hooks().retaining[record.output_nr] = retain


tensor_backward.__name__ = "backward"
Tensor.backward = tensor_backward  # type: ignore[attr-defined]  # attached here
Tensor.requires_grad_ = requires_grad_  # type: ignore[attr-defined]  # attached here
Tensor.register_hook = register_hook  # type: ignore[attr-defined]  # attached here
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook  # type: ignore[attr-defined]  # attached here
Tensor.retain_grad = retain_grad  # type: ignore[attr-defined]  # attached here


def get_backward_hooks(tensor: Tensor) -> dict[int, Callable[..., Any]] | None:
    """The hooks themselves, in their order; None where there were none."""
    return None if tensor._autograd is None else tensor._autograd.hooks


def set_backward_hooks(tensor: Tensor, hooks: Mapping[Any, Callable[..., Any]] | None) -> None:
    """Has these be the hooks, in the place of all others; None for none."""
    record = tensor._autograd
    if record is None:
        tensor._autograd = record = AutogradRecord()
    record.hooks = None if hooks is None else HookDict(hooks)
    node = current_grad_fn(tensor)
    of_node: Any = node._hooks() if node is not None else hooks_of_leaf(tensor)
    if of_node is not None:
        of_node.of_tensors.pop(record.output_nr, None)
        if record.hooks is not None:
            of_node.of_tensors[record.output_nr] = record.hooks


def get_post_accumulate_hooks(tensor: Tensor) -> dict[int, Callable[..., Any]] | None:
    """The hooks that run after a leaf's gradient was added; None where there were none."""
    return None if tensor._autograd is None else tensor._autograd.post_accumulate_hooks


Tensor._backward_hooks = overridable_property(get_backward_hooks, set_backward_hooks)  # type: ignore[attr-defined]  # attached here
Tensor._post_accumulate_grad_hooks = overridable_property(get_post_accumulate_hooks)  # type: ignore[attr-defined]  # attached here
Tensor._grad_fn = overridable_property(lambda self: current_grad_fn(self))  # type: ignore[attr-defined]  # attached here
Tensor._cdata = overridable_property(lambda self: id(self))  # type: ignore[attr-defined]  # attached here
SET_REQUIRES_GRAD.fill(set_requires_grad)
