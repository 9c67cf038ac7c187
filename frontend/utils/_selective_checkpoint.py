"""Selective checkpoints: regions that run again in backward, but keep the results of some operators.

Two dispatch modes for `checkpoint(context_fn=...)`. The one of the first run asks a policy about each operator and
keeps what it is told to; the one of the second run hands these results out, in the same order, and lets the others run.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from redispatch.dispatch import OpOverload, OpOverloadPacket, TorchDispatchMode, exclude, keyset, operator_named
from redispatch.dispatch.pytree import tree_map
from redispatch.dispatch.tensor import Tensor

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
]


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result. Here MUST and PREFER mean the same, and offloading is recomputing."""

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
    """What a policy is told besides the operator and its arguments: the result."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class Kept:
    """One result, and the version at which it was kept."""

    __slots__ = ("value", "version")

    def __init__(self, value: Any) -> None:
        with exclude(keyset("ADInplaceOrView")):  # a view is tied to its base by who hands it out
            self.value = value.detach() if isinstance(value, Tensor) else value
        self.version = self.value._version if isinstance(value, Tensor) else None

    def get(self, may_have_changed: bool) -> Any:
        if self.version is not None and not may_have_changed and self.value._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return self.value


RECOMPUTE, USED = object(), object()
Results = dict[Any, list[Any]]  # for each operator what is known of its calls, in their order


class KeepingMode(TorchDispatchMode):
    """The first run: keeps the results that the policy names."""

    def __init__(self, policy: Callable[..., Any], results: Results) -> None:
        super().__init__()
        self.policy, self.results = policy, results

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        policy = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        saved = policy if isinstance(policy, bool) else policy in SAVED
        self.results[func].append(tree_map(Kept, out) if saved else RECOMPUTE)
        return out


class ReusingMode(TorchDispatchMode):
    """The second run: hands out what was kept. RuntimeError where the runs differ, or for a third run."""

    def __init__(self, results: Results, may_have_changed: bool) -> None:
        super().__init__()
        self.results, self.may_have_changed = results, may_have_changed
        self.calls: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs or {})
        number = self.calls[func]
        self.calls[func] += 1
        known = self.results.get(func)
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
