"""autograd.Function: a differentiable function whose backward the user writes.

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    y = Square.apply(x)

`forward` runs without recording; its results are then tied to one node, which calls `backward`. The context `ctx` is
the user's own name space for what the two share; it belongs to the node, and goes with it.

Read next: op_function.py, which does the same for operators.
"""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any

from redispatch.dispatch import STATE, Slot, wants_gradient, within
from redispatch.dispatch.layers.ad_inplace_or_view import bump_version
from redispatch.dispatch.tensor import SET_REQUIRES_GRAD, CreationMeta, Tensor, dtypes, metadata_of

from .anomaly_mode import ANOMALY, remember
from .formulas import any_complex, resolved
from .history import gradient_edge, rebase, set_edge, tie_fresh
from .hooks import WATCH
from .node import SEQUENCE, ZEROS, Node
from .saved import (
    FREED,
    PACKING,
    WRAPPED,
    SavedNone,
    SavedTensor,
    kept_value,
    saved_tensor,
    version_of,
    without_history,
)
from .views import current_grad_fn, make_view


class FunctionCtx:
    """The context that `forward` and `backward` share: attributes of the user's choice, and the methods below."""

    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads = True
    _materialize_non_diff_grads = True  # whether `backward` gets zeros for outputs that have no gradient, too
    _without_gradient: tuple[int, ...] = ()  # the places of those that `mark_non_differentiable` named
    _node: Callable[[], Any] = staticmethod(lambda: None)  # a weak reference, if the call is recorded

    def __init__(self, needs_input_grad: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs_input_grad

    def save_for_backward(self, *tensors: Any) -> None:
        """Keeps tensors (or None) until backward; `saved_tensors` gives them back. Called at most once."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keeps tensors for a `jvp`, which forward mode will ask."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Says which inputs `forward` wrote; they must be among its outputs."""
        for position, one in enumerate(args):
            if one is not None and not isinstance(one, Tensor):
                raise RuntimeError(
                    f"mark_dirty can only accept variables, but argument {position} is of type {type(one).__name__}"
                )
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Says which outputs have no gradient; `backward` gets zeros for them."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (the default) or None for an output that no gradient reached."""
        self.materialize_grads = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """Returns the saved tensors. RuntimeError where a backward pass freed them, or they were overwritten."""
        node = self._node()
        if node is None:
            return self.to_save
        saved = node.saved
        if saved is None:
            raise RuntimeError(FREED)
        return tuple([kept_value(node, saved[i], saved[i + 1]) for i in range(0, len(saved), 2)])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """Returns `saved_tensors`, and warns: the name is deprecated."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def __getattr__(self, name: str) -> Any:
        """The context answers for its node, too: `ctx.name()`, `ctx.next_functions`."""
        node = None if name.startswith("_") else self._node()
        if node is not None and hasattr(Node, name):
            return getattr(node, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")


class FunctionNode(Node):
    """The node of one call. Each Function has a subclass, whose `backward` is the user's."""

    __slots__ = ("ctx", "saved", "inputs", "facts")
    backward: Callable[..., Any]
    ctx: FunctionCtx
    saved: Any  # as `OperatorNode.kept`: tensors, each with its version; None once they were let go
    inputs: Sequence[bool]  # which arguments are tensors
    facts: Sequence[Any]  # for each output what it looks like, also where it has no gradient

    def __init__(self, ctx: FunctionCtx, inputs: Sequence[Any]) -> None:
        """`inputs` are the arguments of the call; those that are tensors get an edge each."""
        self.next_edges = tuple([gradient_edge(value) for value in inputs if isinstance(value, Tensor)])
        self.outputs = ()
        self.sequence = next(SEQUENCE)
        self.hooks = None
        self.inputs = [isinstance(value, Tensor) for value in inputs]
        self.ctx = ctx
        self.saved = self.facts = ()
        ctx._node = weakref.ref(self)
        if WATCH.on and ANOMALY.get()[0]:
            remember(self)

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        results = type(self).backward(self.ctx, *self.materialized(gradients))
        return self.checked(list(results) if isinstance(results, tuple | list) else [results])

    def materialized(self, gradients: list[Any]) -> list[Any]:
        """The gradients as `backward` wants them: no lazy conjugates; zeros for None, unless it was asked for None."""
        if any_complex(gradients):
            gradients = [resolved(gradient) for gradient in gradients]
        if not self.ctx.materialize_grads:
            return gradients
        every = self.ctx._materialize_non_diff_grads
        return [
            ZEROS()(facts.shape, facts.dtype, facts.device)
            if gradient is None and facts is not None and (every or output is not None)
            else gradient
            for gradient, facts, output in zip(gradients, self.facts, self.outputs, strict=True)
        ]

    def checked(self, results: list[Any]) -> list[Any]:
        """One gradient per tensor among the inputs. RuntimeError where `backward` gave another number."""
        expected = len(self.inputs)
        while len(results) > expected and results[-1] is None:
            results.pop()
        if len(results) != expected:
            raise wrong_count(self.name(), expected, len(results))
        if all(self.inputs):
            return results
        for position, (result, is_tensor) in enumerate(zip(results, self.inputs, strict=True), 1):
            if result is not None and not is_tensor:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position}, but the "
                    "corresponding forward input was not a Variable"
                )
        return [result for result, is_tensor in zip(results, self.inputs, strict=True) if is_tensor]

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The SavedTensors of what was saved, made now and kept in its place. RuntimeError where it was let go."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        made = [saved_tensor(saved[i], saved[i + 1], None) for i in range(0, len(saved), 2)]
        versions = [None if version is None else WRAPPED for version in saved[1::2]]
        self.saved = [part for pair in zip(made, versions, strict=True) for part in pair]
        return tuple(SavedNone() if one is None else one for one in made)

    def save(self, tensors: Iterable[Any]) -> None:
        """Keeps what `ctx.save_for_backward` was given. TypeError for what is no tensor."""
        kept: list[Any] = []
        for position, tensor in enumerate(tensors):
            if tensor is None:
                kept += None, None
                continue
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of type "
                    f"{type(tensor).__name__}"
                )
            record = tensor._autograd
            if record is not None and record.grad_fn is self:
                kept += SavedTensor(tensor, record.output_nr), WRAPPED
            elif WATCH.on and PACKING.get():
                kept += SavedTensor(tensor), WRAPPED
            else:
                kept += tensor, version_of(tensor)
        self.saved = kept
        self.ctx.to_save = ()  # the outputs among them would keep this node alive

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def __getattr__(self, name: str) -> Any:
        """Finds attributes that the user put on the context."""
        if name in FunctionNode.__slots__ or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ctx, name)


def wrong_count(name: str, expected: int, given: int) -> RuntimeError:
    return RuntimeError(f"function {name} returned an incorrect number of gradients (expected {expected}, got {given})")


class Function:
    """Subclass it, write `forward` and `backward` as static methods, and call `apply`.

    `forward(ctx, *args)`, or `forward(*args)` together with `setup_context(ctx, inputs, output)`.

    >>> import redispatch as rd
    >>> class Cube(rd.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = rd.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False
    _node_class: type[FunctionNode]
    _backward_cls: type[FunctionNode]
    _context_class: type[FunctionCtx]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name = f"{cls.__name__}Backward"
        cls._node_class = type(name, (FunctionNode,), {"__slots__": (), "backward": cls._backward})
        cls._backward_cls = cls._node_class  # PyTorch's name
        cls._context_class = type(name, (FunctionCtx,), {})

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def _backward(cls, ctx: Any, *gradients: Any) -> Any:
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return (cls.vjp if cls.vjp is not Function.vjp else cls.backward)(ctx, *gradients)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs `forward`, and records one node if an argument requires grad.

        Arguments by keyword go to `forward`, too, but have no gradient, unless there is a `setup_context`: then they
        are put in their places first.
        """
        split = cls.setup_context is not Function.setup_context
        if split and (kwargs or not takes_just(cls.forward, len(args))):
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        state = STATE.get()
        if state.levels and not split and not SINGLE_LEVEL.get():
            return SPLIT()(cls, args, kwargs)
        if state.dual_level is not None and any(is_dual(value) for value in args):
            return DUAL_CALL()(cls, args, kwargs)
        if state.levels and not SINGLE_LEVEL.get():
            return state.innermost.apply_function(cls, args)
        return cls._applied(args, kwargs)[0]

    @classmethod
    def _applied(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, FunctionCtx]:
        """(the result, the context) of a call outside of all transforms."""
        state = STATE.get()
        ctx = cls._context_class(tuple([wants_gradient(value) for value in args]))
        node = cls._node_class(ctx, args) if state.grad_enabled and True in ctx.needs_input_grad else None
        token = STATE.set(state.with_grad(False))
        try:
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
            result = tie_outputs(node, ctx, args, output)
        finally:
            STATE.reset(token)
        if node is not None and ctx.to_save:
            node.save(ctx.to_save)
        return result, ctx


# Whether `apply` under a transform runs `forward` on the transform's wrappers, as it does outside: private to PyTorch
SINGLE_LEVEL: ContextVar[bool] = ContextVar("Functions are of the innermost transform alone", default=False)


def is_dual(value: Any) -> bool:
    return isinstance(value, Tensor) and (value._tangent is not None or value._view is not None)


# (Function, args, kwargs) -> the result of `apply` where an argument may have a tangent: forward_ad.py
DUAL_CALL: Slot[Callable[..., Any]] = Slot("how a Function is called in forward mode")

# (Function, args, kwargs) -> the result of `apply` under a transform, where forward takes the context: see `split`
SPLIT: Slot[Callable[..., Any]] = Slot("how a Function without setup_context is called under a transform")


def takes_just(function: Callable[..., Any], count: int) -> bool:
    """Whether a function takes so many arguments by position, and nothing else: then these are what it will get."""
    code: Any = getattr(function, "__code__", None)
    if code is None or code.co_kwonlyargcount or code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return False
    return code.co_argcount == count


# --- What becomes of forward's outputs --------------------------------------------------------------------------------


def tie_outputs(node: FunctionNode | None, ctx: FunctionCtx, inputs: Sequence[Any], output: Any) -> Any:
    """Returns the result of `apply`: forward's outputs, the differentiable ones as outputs of `node`."""
    if (
        node is not None
        and type(output) is Tensor
        and output._autograd is None
        and output._dtype.category >= dtypes.FLOATING
        and not (ctx.dirty_tensors or ctx.non_differentiable or is_among(output, inputs))
    ):
        tie_fresh(output, node)  # one new tensor, as most functions give
        node.facts = node.outputs
        return output
    outputs = list(output) if isinstance(output, tuple) else [output]
    dirty = [tensor for tensor in ctx.dirty_tensors if tensor is not None]
    check_dirty(dirty, inputs, outputs)
    for tensor in dirty:
        bump_version(tensor)
    differentiable = [node is not None and is_differentiable(value, ctx) for value in outputs]
    several = sum(differentiable) > 1
    facts: list[Any] = []
    for index, value in enumerate(outputs):
        if not isinstance(value, Tensor):
            if node is not None:
                node.add_output(None)
            facts.append(None)
            continue
        outputs[index] = value = tied(node, value, differentiable[index], inputs, dirty, len(outputs))
        facts.append(metadata_of(value))
        if value._view is not None and not is_among(value, dirty) and (node is not None or not wants_gradient(value)):
            meta = CreationMeta.MULTI_OUTPUT_NODE if several else CreationMeta.IN_CUSTOM_FUNCTION
            value._view.creation = meta
    if node is not None:
        node.facts = facts
    if ctx.non_differentiable:
        ctx._without_gradient = tuple(i for i, one in enumerate(outputs) if is_among(one, ctx.non_differentiable))
    ctx.dirty_tensors = ctx.non_differentiable = ()
    return tuple(outputs) if isinstance(output, tuple) else outputs[0]


def tied(node: Any, value: Any, differentiable: bool, inputs: Sequence[Any], dirty: list[Any], count: int) -> Any:
    """One output as it is handed out; an input that was not written keeps its own history, and goes out as a view."""
    returned_input, written = is_among(value, inputs), is_among(value, dirty)
    if not differentiable:
        if node is not None:
            node.add_output(None)
        if returned_input and not written:
            return alias_of(value)
        kept = written or value._view is not None  # as a view that was made where nothing is recorded
        return without_history(value) if wants_gradient(value) and not kept else value
    if written:
        if wants_gradient(value) and current_grad_fn(value) is None:
            raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        if value._view is not None and count > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view (using .clone() for example) or make your Function only return one "
                "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change."
            )
        rebase(value, node)
        return value
    if returned_input:
        value = alias_of(value)
    set_edge(value, node, node.add_output(value))
    return value


def alias_of(tensor: Any) -> Any:
    """A view of all of `tensor`."""
    alias = without_history(tensor)
    if alias._counter is not None:
        make_view(alias, tensor, lambda base: base.view_as(base), CreationMeta.IN_CUSTOM_FUNCTION)
    return alias


def is_differentiable(value: Any, ctx: FunctionCtx) -> bool:
    return (
        isinstance(value, Tensor)
        and value._dtype.category >= dtypes.FLOATING
        and not is_among(value, ctx.non_differentiable)
    )


def is_among(value: Any, values: Iterable[Any]) -> bool:
    for one in values:
        if value is one:
            return True
    return False


def check_dirty(dirty: list[Any], inputs: Sequence[Any], outputs: list[Any]) -> None:
    """RuntimeError where a written input is not handed out: the caller's tensor would keep its former history."""
    if any(not is_among(tensor, inputs) for tensor in dirty):
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
            "should be passed to ctx.mark_dirty().",
            stacklevel=4,
        )
    if any(not is_among(tensor, outputs) for tensor in dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )


# --- backward that cannot itself be differentiated --------------------------------------------------------------------


class Error(Node):
    """A node that raises when backward reaches it."""

    __slots__ = ("message",)
    message: str

    def apply(self, gradients: list[Any], wanted: Sequence[bool] | None = None) -> Sequence[Any]:
        raise RuntimeError(self.message)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a `backward` that is not made of differentiable operations: differentiating it is an error."""

    @functools.wraps(function)
    def wrapper(ctx: Any, *gradients: Any) -> Any:
        with within(STATE.get().with_grad(False)):
            results = function(ctx, *gradients)
        if not STATE.get().grad_enabled or not any(map(wants_gradient, gradients)):
            return results
        node = Error()
        node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
        outputs = tied_to(node, results if isinstance(results, tuple) else (results,), as_leaves=True)
        return tuple(outputs) if isinstance(results, tuple) else outputs[0]

    return wrapper


def once_only(value: Any, message: str) -> Any:
    """A gradient through which no backward goes without this error."""
    node = Error()
    node.message = message
    return tied_to(node, [value])[0]


def tied_to(node: Node, values: Iterable[Any], as_leaves: bool = False) -> list[Any]:
    """The values with other tensors in place of the tensors, outputs of a node, whose gradients go on to the former.

    as_leaves: each of these is taken for a leaf that wants a gradient, so that backward comes to the node in any case.
    """
    outputs: list[Any] = []
    edges: list[Any] = []
    for value in values:
        if isinstance(value, Tensor):
            outputs.append(without_history(value))
            if as_leaves and value._dtype.category >= dtypes.FLOATING:
                value = without_history(value)
                SET_REQUIRES_GRAD()(value, True, "only Tensors of floating point dtype")
            edges.append(gradient_edge(value))
        else:
            outputs.append(value)
            edges.append(None)
    node.next_edges = tuple(edges)
    for value in outputs:
        if isinstance(value, Tensor) and value._dtype.category >= dtypes.FLOATING:
            set_edge(value, node, node.add_output(value))
        else:
            node.add_output(None)
    return outputs


class InplaceFunction(Function):
    """A Function whose instances know whether they write: the base of old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


BackwardCFunction, FunctionMeta = FunctionNode, type(Function)  # PyTorch's names
