"""The device "lazy": tensors whose operators are recorded, and run when somebody asks for values.

    start()
    x = rd.ones(3, device="lazy")
    y = x * 2 + 1           # recorded
    y.cpu()                 # run

A program has wrappers of the layer Functionalize, so that it may write and take views; their values are the recorder's
tensors, which nobody writes. At the key Lazy every operator but those that are written in others is recorded, also such
as one kernel serves on all devices: that writes memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redispatch.dispatch import (
    LISTENERS,
    OPERATORS,
    STATE,
    DispatchKey,
    Kernel,
    OpOverload,
    call,
    keyset,
    place_of,
    within,
)
from redispatch.dispatch.core.registry import add_fallback
from redispatch.dispatch.layers.functionalize import (
    FAST_PATHS,
    FUNCTIONALIZATION,
    below_functionalize,
    compute,
    is_wrapper,
    write,
)
from redispatch.dispatch.layers.layer import boxed_kernel
from redispatch.dispatch.pytree import tree_map_only
from redispatch.dispatch.specialiser.annotations import leaf
from redispatch.dispatch.tensor import KINDS, DeviceKind, Tensor, describe, device
from redispatch.dispatch.tensor.functional import FunctionalStorage, FunctionalTensorWrapper
from redispatch.dispatch.tensor.geometry import last_element

from ..ops.copying import copy_inplace_op, to_copy_op
from ..ops.generators import default_generator
from .program import Programs
from .recorder import CLEAN, HOLDERS, LAZY_KEYS, LazyTensor, Recorder, Result, lazy_tensor

LAZY = device("lazy", 0)
BELOW = CLEAN.excluding(keyset("Functionalize"))  # in which the values of wrappers are worked out
FUNCTIONALIZE = keyset("Functionalize")
EXPLICIT = (DispatchKey.CompositeExplicitAutograd, DispatchKey.CompositeExplicitAutogradNonFunctional)


class LazyWrapper(FunctionalTensorWrapper):
    """The tensor of a program on the lazy device. What asks for values runs what was recorded.

    result: what it shows, as long as it has memory of its own that nobody has asked for: see `_store`.
    """

    _prints_as_tensor = True
    _level = None
    _steps: Any = ()
    _home: Any = None
    _shown: Any
    _made_at: int
    result: Result | None = None

    # Most results are neither written nor viewed. So the memory, which a wrapper shares with its views, and the value
    # in it, come to be when they are asked for.

    @property
    def _store(self) -> Any:
        if self._home is None and self.result is not None:
            value: Any = lazy_tensor(self.result, LAZY)
            span = last_element(value._shape, value._stride, value._offset) + 1 if value._shape.numel() else 0
            self._home = FunctionalStorage(value, span * value._dtype.itemsize, LAZY)
            self._shown, self._made_at, self.result = value, 0, None
        return self._home

    @_store.setter
    def _store(self, home: Any) -> None:
        self._home, self.result = home, None

    @property
    def _value(self) -> Any:
        return None if self._store is None else self._shown

    @_value.setter
    def _value(self, value: Any) -> None:
        self._shown = value

    @property
    def _generation(self) -> Any:
        return None if self._store is None else self._made_at

    @_generation.setter
    def _generation(self, generation: int) -> None:
        self._made_at = generation

    def current_result(self) -> Result:
        """Returns the result that the wrapper shows now."""
        if self.result is not None:
            return self.result
        with within(BELOW):
            return self.current().result

    def values(self) -> Tensor:
        """The tensor on the CPU, which nobody may write."""
        return recorder.value(self.current_result())

    def tolist(self) -> Any:
        return self.values().tolist()

    def __format__(self, spec: str) -> str:
        return format(self.item() if not self._shape else str(self), spec)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # the same signature
        values: Any = self.values().detach()  # which is shown in the place of the wrapper
        values._device, values._autograd, values._view = self._device, self._autograd, self._view
        head = "Parameter containing:\n" if self._is_param else ""
        return head + describe(values, tensor_contents)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            memo[id(self)] = copy = self.detach().clone()
            copy.requires_grad_(self.requires_grad)
            copy._is_param = self._is_param
            if self.grad is not None:
                copy.grad = self.grad.detach().clone()
        return memo[id(self)]


def wrapper(result: Result) -> LazyWrapper:
    """The tensor of a program that shows a result, with memory of its own."""
    seen = result.seen
    t: Any = object.__new__(LazyWrapper)
    t._keyset = seen.keys
    t._counter = [0]
    t._autograd = t._array = t._view = None
    t._shape, t._stride, t._offset = seen.shape, seen.stride, seen.offset
    t._dtype, t._device, t._interned = seen.dtype, LAZY, seen.interned
    t.result = result
    return t


LazyTensor.wrapper = LazyWrapper
HOLDERS.add(LazyWrapper)
recorder = Recorder(LAZY)
recorder.programs = Programs()


def record(op: OpOverload, keys: int, stack: list[Any]) -> Any:
    """Records an operator. Where it was called with wrappers, the layer Functionalize wraps what it gives."""
    if STATE.get().excluded & FUNCTIONALIZE:
        return recorder.record(op, stack)
    return tree_map_only(Result, wrapper, recorder.results(op, stack))


def taken(value: Tensor) -> Tensor:
    """The tensor of a program for values that nobody else has."""
    result = recorder.leaf(value)
    recorder.counts["CreateLtcTensor"] += 1
    return lazy_tensor(result, LAZY) if STATE.get().excluded & FUNCTIONALIZE else wrapper(result)


@leaf  # what it runs, it runs in a state of its own
def fast_path(op: OpOverload, stack: list[Any]) -> Any:
    """Records an operator on wrappers, without tensors in between. NotImplemented for wrappers of others."""
    if type(stack[0]) is not LazyWrapper and not holds_lazy(stack):
        return NotImplemented
    given = recorder.results(op, stack)
    return wrapper(given) if type(given) is Result else tree_map_only(Result, wrapper, given)


def holds_lazy(stack: list[Any]) -> bool:
    """Whether wrappers of this device are among the arguments, and none of others."""
    given = [one for value in stack for one in (value if isinstance(value, list | tuple) else (value,))]
    wrappers = {type(one) for one in given if isinstance(one, FunctionalTensorWrapper)}
    return wrappers == {LazyWrapper}


def lazy_value(x: Any) -> LazyTensor | None:
    """The recorder's tensor in a wrapper; None for other tensors."""
    if not is_wrapper(x):
        return None
    with below_functionalize():
        value = x.current()
    return value if type(value) is LazyTensor else None


def to_copy_rule(op: OpOverload, stack: list[Any]) -> Any:
    """A copy on another device is of values, and no wrapper."""
    value, on = lazy_value(stack[0]), stack[2 if len(stack) < 4 else 3]
    if value is None or on is None or on.type == LAZY.type:
        return compute(op, stack)
    with below_functionalize():
        return call(op, [recorder.value(value), *stack[1:]])


def copy_rule(op: OpOverload, stack: list[Any]) -> Any:
    """A tensor on another device is written at once."""
    value = None if is_wrapper(stack[0]) else lazy_value(stack[1])
    if value is None:
        return write(op, stack)
    with below_functionalize():
        return call(op, [stack[0], recorder.value(value), *stack[2:]])


KERNEL: Kernel = boxed_kernel(record)


def take_over(event: str, op: Any) -> None:
    """Has an operator recorded that has a kernel for all devices."""
    if event == "defined" and isinstance(op, OpOverload) and any(key in op.registrations for key in EXPLICIT):
        UNDO.append(op.register("Lazy", KERNEL))


UNDO: list[Callable[[], object]] = []


def start() -> None:
    """Makes the device usable."""
    if UNDO:
        return
    FAST_PATHS[LAZY_KEYS] = fast_path
    UNDO.append(lambda: FAST_PATHS.pop(LAZY_KEYS))
    UNDO.append(add_fallback(DispatchKey.Lazy, KERNEL))
    for op in list(OPERATORS.values()):
        take_over("defined", op)
    LISTENERS.append(take_over)
    UNDO.append(lambda: LISTENERS.remove(take_over))
    for op, rule in ((to_copy_op, to_copy_rule), (copy_inplace_op, copy_rule)):
        UNDO.append(FUNCTIONALIZATION.add(op.functional, rule, place_of(rule)))
    KINDS[LAZY.type] = DeviceKind(LAZY.type, generators={0: default_generator}, take=taken)
    UNDO.append(lambda: KINDS.pop(LAZY.type))


def stop() -> None:
    """Takes the device away again."""
    while UNDO:
        UNDO.pop()()
