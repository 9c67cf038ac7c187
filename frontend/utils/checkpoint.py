"""checkpoint: a part of a program whose intermediate tensors are not kept for backward, but computed again.

    y = checkpoint(block, x, use_reentrant=False)

Two ways, which PyTorch has for historical reasons:

- *not re-entrant* (the better one): the forward pass is recorded as always, but what would be saved is put down by
  hooks as an empty `Place`. The first place that backward looks into has the function run again, with hooks that fill
  the places, each with what is saved as the same number; as soon as the last is filled, the run is broken off.
- *re-entrant*: an `autograd.Function` runs the function under `no_grad`. Its backward runs it again, recording, and
  then runs a backward pass over that small graph.

Both run it again as it ran before: with the same random numbers, autocast and default device.

Note [Nested checkpoints]
Nothing has to be done for them. The inputs of an inner checkpoint are saved tensors of the outer one, so they are
places, too; to run the inner function again is to look into them, which has the outer one run again first.

Note [Checkpoints in graphs]
Who traces forward and backward as one graph, to be parted, wants no second run in it. He sets `NOTED`, and the function
runs once: of each operator's result it is noted in the graph what is to become of it, by the policy of a selective
checkpoint or, without one, that it may be computed again.

Note [Selective checkpoints]
Regions that run again in backward, but keep the results of some operators: two dispatch modes for `context_fn`. The one
of the first run asks a policy about each operator and keeps what it is told to; the one of the second run hands these
results out, in the same order, and lets the others run.
"""

from __future__ import annotations

import contextlib
import enum
import traceback
import warnings
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from redispatch.amp.autocast_mode import FIELDS
from redispatch.autograd import Function, SavedTensor, backward, enable_grad, is_grad_enabled, no_grad
from redispatch.dispatch import (
    AUTOCAST_KEYS,
    STATE,
    OpOverload,
    OpOverloadPacket,
    State,
    TorchDispatchMode,
    exclude,
    keyset,
    operator_named,
    within,
)
from redispatch.dispatch.autograd.engine import CURRENT_PASS
from redispatch.dispatch.autograd.graph import saved_tensors_hooks
from redispatch.dispatch.autograd.hooks import WATCH
from redispatch.dispatch.autograd.saved import copy_of
from redispatch.dispatch.layers.autocast import CastCache
from redispatch.dispatch.pytree import tree_leaves, tree_map
from redispatch.dispatch.rules import is_own
from redispatch.dispatch.tensor import KINDS, Tensor
from redispatch.kernels.ops.generators import default_states, fork_rng, restore_states

from ._device import DeviceContext

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

# What the two regions below set for all checkpoints in them; None leaves it to the checkpoint.
EARLY_STOP: ContextVar[bool | None] = ContextVar("checkpoints stop early", default=None)
DEBUG: ContextVar[bool | None] = ContextVar("checkpoints debug", default=None)
# (a function, of its result the policy) -> its result, with that policy noted. Note [Checkpoints in graphs]
NOTED: ContextVar[Callable[[Callable[[], Any], Callable[[Any], CheckpointPolicy]], Any] | None] = ContextVar(
    "checkpoints are noted", default=None
)


class CheckpointError(RuntimeError):
    """Raised in backward where a function did not save the same tensors when it ran again."""


def noop_context_fn() -> Contexts:
    """Two context managers that do nothing: for the first run and the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`; what it would save for backward is computed again there.

    preserve_rng_state (among `kwargs`): whether it draws the same random numbers again; True by default. `context_fn`
    gives two context managers, for the first run and the second. `determinism_check`: "default" compares shape, dtype
    and device of what is saved, "none" nothing. `debug`: errors list the operators of both runs. `early_stop`: the
    second run ends with the last tensor to be saved.
    Errors: ValueError for options that do not go together; in backward CheckpointError.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    noted = NOTED.get()
    if noted is not None and is_grad_enabled():
        with context_fn()[0]:
            return noted(lambda: function(*args, **kwargs), lambda out: CheckpointPolicy.PREFER_RECOMPUTE)
    if not use_reentrant:
        return without_reentrance(function, args, kwargs, preserve, context_fn, determinism_check, debug, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve, *args)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Runs modules or functions one after the other, in segments of which all but the last are checkpoints."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True. "
            "Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions)  # a Sequential is iterated in order, too
    size = len(steps) // segments
    for start in range(0, size * (segments - 1), size):
        segment = in_turn(steps[start : start + size])
        input = checkpoint(segment, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return in_turn(steps[size * (segments - 1) :])(input)


def in_turn(steps: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        for step in steps:
            value = step(value)
        return value

    return run


# --- The same surroundings again --------------------------------------------------------------------------------------


class Surroundings:
    """The surroundings of a function: random numbers, autocast and default device. `again()` brings them back."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.state = STATE.get()
        self.rng_states = default_states() if preserve_rng_state else None

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """A region, recorded, that is as things were; after it they are as before it."""
        with fork_rng(enabled=self.rng_states is not None), within(like(self.state)):
            restore_states(self.rng_states or [])
            yield


def like(former: State) -> State:
    """The present state, but recording, and with the autocast and default device of a former one."""
    now = STATE.get()
    device = [mode for mode in former.function_modes if isinstance(mode, DeviceContext)][-1:]
    autocast = {name: getattr(former, name) for name in FIELDS}
    return now.replace(
        grad_enabled=True,
        excluded=now.excluded & ~AUTOCAST_KEYS | former.excluded & AUTOCAST_KEYS,
        function_modes=(*now.function_modes, *device),
        **autocast | {"autocast_cache": None if former.autocast_cache is None else CastCache()},
    )


# --- Not re-entrant ---------------------------------------------------------------------------------------------------


def without_reentrance(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve_rng_state: bool,
    context_fn: Callable[[], Contexts],
    determinism_check: str,
    debug: bool,
    early_stop: bool,
) -> Any:
    """`function(*args, **kwargs)`, recorded with hooks that save nothing."""
    logs = None
    if debug if DEBUG.get() is None else DEBUG.get():
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        logs = OperatorLog(), OperatorLog()
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    surroundings = Surroundings(preserve_rng_state)
    first, second = logs or context_fn()

    def run_again(*args: Any) -> None:
        with surroundings.again(), second:
            function(*args, **kwargs)

    if not is_grad_enabled():
        return function(*args, **kwargs)
    forced = EARLY_STOP.get()
    region = Checkpoint(run_again, args, CHECKS[determinism_check], early_stop if forced is None else forced, logs)
    with saved_tensors_hooks(region.leave_place, region.look_into), first:
        result = function(*args, **kwargs)
        region.complete = True
        return result
    raise RuntimeError(
        "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during the "
        "checkpointed forward. This is not supported because checkpoint cannot return a value for a failed forward."
    )


def metadata(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


CHECKS: dict[str, Callable[[Any], Any]] = {"default": metadata, "none": lambda tensor: None}


class Place:
    """Stands where a tensor would be saved: `number` says as which of its checkpoint."""

    __slots__ = ("number", "__weakref__")

    def __init__(self, number: int) -> None:
        self.number = number


class _AllPlacesFilled(Exception):
    """Breaks off the second run."""


class Checkpoint:
    """One call of `checkpoint`: how to run it again, and the places of what it saved.

    A tensor that was computed again belongs to one backward pass, and is let go as soon as that has looked at it.
    """

    def __init__(
        self,
        run_again: Callable[..., None],
        args: tuple[Any, ...],
        check: Callable[[Any], Any],
        early_stop: bool,
        logs: tuple[OperatorLog, OperatorLog] | None,
    ) -> None:
        self.run_again, self.check, self.early_stop, self.logs = run_again, check, early_stop, logs
        # Saved as for an operator, with the hooks that stand around: Note [Nested checkpoints]
        self.args = [SavedTensor(arg) if isinstance(arg, Tensor) else arg for arg in args]
        self.places: list[weakref.ref[Place]] = []  # a place goes with the node that saved it; it needs no tensor then
        self.expected: list[Any] = []  # what `check` said of each tensor
        self.complete = False  # whether the first run is over; a backward pass inside it comes earlier
        self.filled: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()

    def leave_place(self, tensor: Any) -> Place:
        """The pack hook of the first run."""
        place = Place(len(self.places))
        self.places.append(weakref.ref(place))
        with no_grad():
            self.expected.append(self.check(tensor))
        return place

    def look_into(self, place: Place) -> Any:
        """The unpack hook of the first run: the tensor, computed again if this is the pass's first look."""
        owner = GROUP.get() or CURRENT_PASS.get() or Place(-1)  # looked at outside of any pass: for this look only
        try:
            tensors = self.filled.get(owner)
            if tensors is None:
                tensors = self.filled[owner] = self.computed_again()
            if place.number not in tensors:
                raise self.looked_twice()
            return tensors.pop(place.number)
        except CheckpointError as error:
            if self.logs is None:
                raise
            raise CheckpointError(report(error, *self.logs)) from error

    def computed_again(self) -> dict[int, Any]:
        """Runs the function again; returns the tensor for each place that is left. Errors: CheckpointError."""
        args = [arg.unpack(None) if isinstance(arg, SavedTensor) else arg for arg in self.args]
        again = SecondRun(self)
        with contextlib.suppress(_AllPlacesFilled), saved_tensors_hooks(again.fill, lambda tensor: tensor):
            self.run_again(*args)
        again.verify()
        return again.tensors

    @staticmethod
    def looked_twice() -> CheckpointError:
        overlap = (
            "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
            "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
        )
        return CheckpointError(
            "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
            f"{overlap if GROUP.get() else ''}If you are calling ctx.saved_tensors in backward, make sure to do so "
            "only once."
        )


class SecondRun:
    """The places of a checkpoint being filled. What is saved is saved, too: the function may run backward itself."""

    def __init__(self, region: Checkpoint) -> None:
        self.region = region
        self.count = 0
        self.tensors: dict[int, Any] = {}
        self.too_many = False

    def fill(self, tensor: Any) -> Any:
        """The pack hook. What it keeps has no history: a result would hold itself."""
        tensor = copy_of(tensor) if tensor.requires_grad else tensor
        region, number = self.region, self.count
        self.count += 1
        if number >= len(region.places):
            if region.complete:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\n{TIP}"
                )
            self.too_many = True
            return tensor
        if region.places[number]() is not None:
            self.tensors[number] = tensor
        if region.early_stop and self.count == len(region.places):
            raise _AllPlacesFilled
        return tensor

    def verify(self) -> None:
        """CheckpointError where the second run has not saved what the first did."""
        region = self.region
        if self.too_many:
            return
        if self.count != len(region.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(region.places)}\n"
                f"Number of tensors saved during recomputation: {self.count}.\n{TIP}"
            )
        found = {number: region.check(tensor) for number, tensor in self.tensors.items()}
        different = "".join(
            f"tensor at position {number}:\nsaved metadata: {region.expected[number]}\nrecomputed metadata: {got}\n"
            for number, got in found.items()
            if got != region.expected[number]
        )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}.\n{TIP}"
            )


TIP = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to `torch.utils.checkpoint.checkpoint(...)` "
    "or wrap the code block with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to enable "
    "checkpoint-debug mode globally.\n"
)


class GraphExecGroup:
    """A region whose backward passes share what checkpoints compute again; they must not need the same of it."""

    def __enter__(self) -> GraphExecGroup:
        if GROUP.get() is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {GROUP.get()}")
        GROUP.set(self)
        return self

    def __exit__(self, *error: object) -> None:
        GROUP.set(None)


GROUP: ContextVar[GraphExecGroup | None] = ContextVar("passes that share checkpoints", default=None)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """A region whose checkpoints run again only as far as they must, or to the end, wherever backward is called."""
    token = EARLY_STOP.set(enable)
    try:
        yield
    finally:
        EARLY_STOP.reset(token)


# --- What ran, for errors ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """A region whose checkpoints behave as with `debug=enabled`; None leaves it to them."""
    token = DEBUG.set(enabled)
    try:
        yield
    finally:
        DEBUG.reset(token)


class OperatorLog(TorchDispatchMode):
    """Writes down each operator, and where it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def __enter__(self) -> Any:
        self.lines.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shown = ", ".join(f"{a.dtype}{list(a.shape)}" if isinstance(a, Tensor) else repr(a) for a in args)
        users = [frame for frame in traceback.extract_stack() if not is_of_library(frame.filename)]
        self.lines.append((f"{func}({shown})", f"{users[-1].filename}:{users[-1].lineno}" if users else ""))
        return func(*args, **kwargs or {})


def is_of_library(filename: str) -> bool:
    """Returns whether a frame of this file, or of generated code, says nothing to users."""
    return filename.startswith("<") or is_own(filename)


def report(error: CheckpointError, first: OperatorLog, second: OperatorLog) -> str:
    """The message of `error`, with the operators of both runs side by side."""
    parts = []
    for title, log in (("original forward", first), ("recomputation", second)):
        listed = "".join(f"  {line}    {place}\n" for line, place in log.lines)
        parts.append(f"Operations executed during {title if log is second else 'the ' + title}:\n\n{listed}")
    return (
        "An error happened while unpacking tensors; dumping logs of latest computation because you passed `debug=True` "
        "to `torch.utils.checkpoint.checkpoint()`.\n\n"
        + "\n".join(parts)
        + f"\n{str(error).replace(TIP, '').rstrip()}\n"
        "You are seeing this error because you passed `debug=True` to checkpoint and tensors to be saved during the "
        "original forward differ from those saved during recomputation. The operators of both are above."
    )


# --- Re-entrant -------------------------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """A function as a single node, which runs it again in backward, and a backward pass over that."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        WATCH.on = True  # so that backward can ask for the pass it is in
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state)
        ctx.others = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.save_for_backward(*(arg if isinstance(arg, Tensor) else None for arg in args))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        running = CURRENT_PASS.get()
        if running is not None and running.partial:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        saved = zip(ctx.saved_tensors, ctx.others, strict=True)
        inputs = detach_variable(tuple(other if tensor is None else tensor for tensor, other in saved))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*inputs)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = zip(outputs, gradients, strict=False)
        roots = [(out, grad) for out, grad in pairs if isinstance(out, Tensor) and out.requires_grad]
        if not roots:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in roots], [grad for _, grad in roots])
        return (None, None, *(value.grad if isinstance(value, Tensor) else None for value in inputs))


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warns where no tensor among the inputs requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs, each tensor as a leaf of its own. RuntimeError for what is no tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(as_leaf(value) if isinstance(value, Tensor) else value for value in inputs)


def as_leaf(tensor: Any) -> Any:
    leaf = tensor.detach()
    leaf.requires_grad = tensor.requires_grad
    return leaf


# --- the numbers that devices draw -----------------------------------------------------------------------------------


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """(indices, states): of each device of a user's kind with a tensor among `args`, where its generator stands.

    The CPU's own generator has one state, `get_rng_state()`.
    """
    placed = {x.device for x in tree_leaves(args) if isinstance(x, Tensor) and x.device.type in KINDS}
    devices = sorted(placed, key=str)
    states = [KINDS[on.type].generators[on.index or 0].get_state() for on in devices]
    return [on.index or 0 for on in devices], states


def set_device_states(devices: Sequence[int], states: Sequence[Any], *, device_type: str | None = None) -> None:
    """Puts the generators of these devices where `get_device_states` found them.

    device_type: their kind; by default the one that is registered. RuntimeError for a kind that is not.
    """
    if not devices:
        return
    kind = KINDS.get(device_type or next(iter(KINDS), ""))
    if kind is None:
        raise RuntimeError(f"set_device_states: there is no device of type {device_type}; register a backend first")
    for index, state in zip(devices, states, strict=True):
        kind.generators[index].set_state(state)


# --- Selective checkpoints --------------------------------------------------------------------------------------------


class CheckpointPolicy(enum.Enum):
    """The fate of an operator's result. Here MUST and PREFER mean the same, and offloading is recomputing."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
# Hooks on saved tensors detach in the first run and in the second, but not as often.
SAC_IGNORED_OPS = {operator_named("aten::detach")}


class SelectiveCheckpointContext:
    """The result, which a policy gets besides the operator and its arguments."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class Kept:
    """One result, and the version at which it was kept."""

    __slots__ = ("val", "counter", "version")

    def __init__(self, value: Any) -> None:
        with exclude(keyset("ADInplaceOrView")):  # a view is tied to its base by who hands it out
            self.val = value.detach() if isinstance(value, Tensor) else value
        self.counter = value._counter if isinstance(value, Tensor) else None
        self.version = self.counter and self.counter[0]

    def get(self, may_have_changed: bool) -> Any:
        if self.counter is not None and not may_have_changed and self.counter[0] != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.val


RECOMPUTE, USED = object(), object()
Results = dict[Any, list[Any]]  # for each operator what is known of its calls, in their order


class KeepingMode(TorchDispatchMode):
    """The first run: keeps the results that the policy names."""

    def __init__(self, policy: Callable[..., Any], results: Results) -> None:
        super().__init__()
        self.policy, self.storage = policy, results

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        noted = NOTED.get()
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        if noted is not None:
            return noted(lambda: func(*args, **kwargs), lambda out: self.policy_of(out, func, args, kwargs))
        out = func(*args, **kwargs)
        saved = self.policy_of(out, func, args, kwargs) in SAVED
        self.storage[func].append(tree_map(Kept, out) if saved else RECOMPUTE)
        return out

    def policy_of(self, out: Any, func: Any, args: Any, kwargs: Any) -> CheckpointPolicy:
        policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        if isinstance(policy, bool):
            return CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        return policy


class ReusingMode(TorchDispatchMode):
    """The second run: hands out what was kept. RuntimeError where the runs differ, or for a third run."""

    def __init__(self, results: Results, may_have_changed: bool) -> None:
        super().__init__()
        self.storage, self.may_have_changed = results, may_have_changed
        self.calls: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs or {})
        number = self.calls[func]
        self.calls[func] += 1
        known = self.storage.get(func)
        if known is None:
            raise RuntimeError(f"{func} encountered during backward but not found in storage. {MISMATCH}")
        if number >= len(known):
            raise RuntimeError(
                f"{func} invocation index {number} encountered during backward but not found in storage. {MISMATCH}"
            )
        entry = known[number]
        if entry is USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is RECOMPUTE:
            return func(*args, **kwargs or {})
        known[number] = USED
        return tree_map(lambda kept: kept.get(self.may_have_changed), entry)


MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[KeepingMode, ReusingMode]:
    """Two context managers for `checkpoint`'s `context_fn`: results that the policy says to save are not recomputed.

    policy_fn_or_list: `policy(context, op, *args, **kwargs)`, which returns a CheckpointPolicy, or the list of
    operators to save.
    Errors: ValueError for a list of other things than operators; in backward RuntimeError where a kept tensor was
    written, unless `allow_cache_entry_mutation`.
    """
    policy: Any = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            check_is_overload(op)

        def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            return op in policy_fn_or_list

    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    results: Results = defaultdict(list)
    return KeepingMode(policy, results), ReusingMode(results, allow_cache_entry_mutation)


def check_is_overload(op: Any) -> None:
    if isinstance(op, OpOverload):
        return
    advice = ""
    if isinstance(op, OpOverloadPacket):
        advice = (
            "Please update the OpOverloadPacket to a specific OpOverload.For example, if you have `torch.ops.aten.mm`, "
            "change it to `torch.ops.aten.mm.default`."
        )
    raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {advice}")


_CachingTorchDispatchMode, _CachedTorchDispatchMode = KeepingMode, ReusingMode  # PyTorch's names
