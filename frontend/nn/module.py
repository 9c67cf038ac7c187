"""Module: the base class of everything that has parameters and a `forward`.

    class Net(Module):
        def __init__(self):
            super().__init__()
            self.linear = Linear(2, 3)

        def forward(self, x):
            return self.linear(x).relu()

What a module holds is in tree.py, how it is saved in checkpoint.py. Here is what it does: it is called, with hooks
around its forward (hooks.py); it is moved and converted; it is switched between training and evaluation; and it is
printed.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from functools import partialmethod
from typing import Any, Self, TypeVar

from redispatch.autograd import RemovableHandle
from redispatch.dispatch.tensor import Tensor, device, dtypes
from redispatch.kernels.ops import creation

from .. import compiler
from .checkpoint import Checkpointable, registered
from .hooks import EVERYWHERE, NodeHook, call_with_hooks, check_one_kind
from .parameter import converted
from .tree import ModuleTree


class Module(Checkpointable):
    """A tree of parameters, buffers and child modules that is called like a function: a subclass gives `forward`."""

    dump_patches = False  # as in PyTorch: changes of source code are told no longer
    T_destination = TypeVar("T_destination", bound=dict[str, Any])  # of `state_dict`, for annotations
    call_super_init = False  # whether __init__ goes on to the class that follows Module among the bases
    _forward_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]  # the numbers of those that are called so
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: OrderedDict[int, Callable[..., Any]]
    _backward_pre_hooks: OrderedDict[int, Callable[..., Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name = f"{type(self).__name__}.__init__()"
        if kwargs and not self.call_super_init:
            raise TypeError(f"{name} got an unexpected keyword argument '{next(iter(kwargs))}'")
        if args and not self.call_super_init:
            raise TypeError(f"{name} takes 1 positional argument but {len(args) + 1} were given")
        super().__init__()
        self.__dict__.update(no_hooks())
        if self.call_super_init:
            super(ModuleTree, self).__init__(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """Returns what `pickle` keeps: not what was compiled."""
        return {name: value for name, value in self.__dict__.items() if name != "_compiled_call_impl"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Takes what `pickle` kept; an older version knew fewer kinds of hooks."""
        super().__init__()
        self.__dict__.update({**no_hooks(), **state})

    # Calling --------------------------------------------------------------------------------------------------

    def _forward_is_missing(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: every subclass gives its own `forward`."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    forward: Callable[..., Any] = _forward_is_missing  # any signature: a subclass's is its own affair

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """`forward`, with the hooks around it where there are any."""
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or EVERYWHERE
            or self._compiled_call_impl is not None
        ):
            return (self._compiled_call_impl or self._call_impl)(*args, **kwargs)
        return self.forward(*args, **kwargs)

    _wrapped_call_impl = __call__  # PyTorch's name of it, which wrappers call
    _compiled_call_impl: Callable[..., Any] | None = None

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return call_with_hooks(self, args, kwargs)

    def _slow_forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Has the module's calls run as `redispatch.compile` has those of a function; takes the same options."""
        made = compiler.compile(self, *args, **kwargs)
        if made is not self:  # `disable` was asked for
            made.dynamo_ctx.plain = self._call_impl
            self._compiled_call_impl = made.dynamo_ctx

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before forward; what it returns replaces the arguments.

        `with_kwargs`: calls `hook(module, args, kwargs)`, which returns None or a pair.
        """
        options = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return registered(self._forward_pre_hooks, hook, prepend, options)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, result)` after forward; what it returns replaces the result.

        `with_kwargs`: calls `hook(module, args, kwargs, result)`. `always_call`: also after an exception.
        """
        options = [self._forward_hooks_with_kwargs] if with_kwargs else []
        options += [self._forward_hooks_always_called] if always_call else []
        return registered(self._forward_hooks, hook, prepend, options)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before backward enters the module; its result replaces `grad_output`."""
        return registered(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` when the gradients of the module's positional inputs are there.

        What it returns replaces `grad_input`. The module must not change its inputs or results in place.
        """
        check_one_kind(self, type(hook))
        return registered(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older `register_full_backward_hook`: of a module of several operators, `hook` sees the last one alone."""
        check_one_kind(self, NodeHook)
        return registered(self._backward_hooks, NodeHook(hook), False)

    # Converting -----------------------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Puts `fn(tensor)` in the place of every parameter, gradient and buffer; parameters stay the same objects."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is not None:
                self._parameters[name] = converted(parameter, fn, f"{self._get_name()}.{name}")
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Calls `fn` with every module of the tree, children first."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Moves and converts: `to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`. Integers keep their dtype.

        Errors: TypeError for a dtype that is neither floating nor complex.
        """
        place, dtype, options = destination(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        memory_format = options.pop("memory_format", None)
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules "
                "might not work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(tensor: Any) -> Any:
            chosen = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            formatted = {"memory_format": memory_format} if memory_format and tensor.dim() in (4, 5) else {}
            try:
                # by position: classes that have a `to` of their own count on it
                return tensor.to(place, chosen, options.get("non_blocking", False), **formatted)
            except NotImplementedError as error:
                if "Cannot copy out of meta tensor" not in str(error):
                    raise
                raise NotImplementedError(
                    f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module "
                    "from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Moves to a device without the values, which are undefined afterwards."""
        return self._apply(lambda tensor: creation.empty_like(tensor, device=device), recurse)

    def cuda(self, device: Any = None) -> Self:
        """Moves all parameters and buffers to a CUDA device: an index, a device, or the current one."""
        return self._apply(lambda tensor: tensor.cuda(device))

    def cpu(self) -> Self:
        return self._apply(lambda tensor: tensor.cpu())

    def _placed(self, kind: str, device: Any = None) -> Self:
        """Moves all parameters and buffers to a device of this kind: the one of an index, or the current one."""
        return self.to(kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device)

    xpu = partialmethod(_placed, "xpu")
    ipu = partialmethod(_placed, "ipu")
    mtia = partialmethod(_placed, "mtia")

    def float(self) -> Self:
        return self._floating(dtypes.float32)

    def double(self) -> Self:
        return self._floating(dtypes.float64)

    def half(self) -> Self:
        return self._floating(dtypes.float16)

    def bfloat16(self) -> Self:
        return self._floating(dtypes.bfloat16)

    def _floating(self, dtype: dtypes.dtype) -> Self:
        return self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)

    def share_memory(self) -> Self:
        """Moves every parameter and buffer to memory that other processes see."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def type(self, dst_type: Any) -> Self:
        """Converts every parameter and buffer, integers, too."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    # Training -------------------------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Sets `training` on the whole tree: Dropout and its like work in training only."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Sets whether autograd records what happens to the parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients of all parameters away, or fills them with zeros."""
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    # Printing -------------------------------------------------------------------------------------------------

    def _replicate_for_data_parallel(self) -> Any:
        """Returns a module over the same parameters, whose tables of them are its own."""
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers, replica._modules = self._buffers.copy(), self._modules.copy()
        replica.__dict__["_is_replica"] = True
        return replica

    def extra_repr(self) -> str:
        """Returns the printed part of this module besides its children: `in_features=2, out_features=3`."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        children = [f"({name}): {indented(repr(module))}" for name, module in self._modules.items()]
        return block(self._get_name(), extra, children)


HOOK_TABLES = """
    _forward_hooks _forward_hooks_with_kwargs _forward_hooks_always_called _forward_pre_hooks
    _forward_pre_hooks_with_kwargs _backward_hooks _backward_pre_hooks
""".split()


def no_hooks() -> dict[str, OrderedDict[int, Any]]:
    return {table: OrderedDict() for table in HOOK_TABLES}


def destination(*args: Any, **kwargs: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Device, dtype and other options from the arguments of `Module.to`."""
    first, *rest = args or (None,)
    names = ["device", "dtype", "non_blocking"]
    if isinstance(first, dtypes.dtype):
        names = ["dtype", "non_blocking"]
    elif isinstance(first, Tensor) or "tensor" in kwargs:
        example = kwargs.pop("tensor", first)
        first = example.device
        rest = [example.dtype, *rest]
    given = dict(zip(names, [first, *rest], strict=False))
    options = {**given, **kwargs}
    place, dtype = options.pop("device", None), options.pop("dtype", None)
    if options.get("copy"):
        raise RuntimeError(".to() does not accept copy argument")
    known = options.keys() <= {"non_blocking", "memory_format", "copy"} and len(args) <= len(names)
    if not (known and isinstance(place, device | str | int | None) and isinstance(dtype, dtypes.dtype | None)):
        raise TypeError(
            "to() received an invalid combination of arguments: expected (device, dtype, non_blocking), "
            "(dtype, non_blocking) or (tensor, non_blocking), and memory_format by keyword"
        )
    return None if place is None else device(place), dtype, options


def clear_grad(tensor: Any, set_to_none: bool) -> None:
    """Takes a tensor's gradient away, or fills it with zeros and cuts it off from the graph that made it."""
    if tensor.grad is None:
        return
    if set_to_none:
        tensor.grad = None
        return
    if tensor.grad.grad_fn is not None:
        tensor.grad.detach_()
    else:
        tensor.grad.requires_grad_(False)
    tensor.grad.zero_()


def block(name: str, extra: str, children: list[str]) -> str:
    """`name(extra)`, or over several lines where there are children or the extra has several lines."""
    lines = [*(extra.split("\n") if extra else ()), *children]
    if not lines or (len(lines) == 1 and not children):
        return f"{name}({extra})"
    body = "\n  ".join(lines)
    return f"{name}(\n  {body}\n)"


def indented(text: str) -> str:
    """The text with every line but the first moved in by two spaces."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(f"  {line}" if line.strip() else "" for line in rest)])
