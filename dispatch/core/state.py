"""The dispatch state of a thread or task: one immutable value in one context variable.

What a call does depends on its arguments and on this: keys included and excluded, the stacks of modes, whether
gradients are recorded, what autocast casts to. Because the value is immutable and a `ContextVar` holds it, each
thread and each asyncio task sees its own, and a suspended task keeps what it had.

Read next: interpreter.py, where the state meets the arguments' keysets.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple

from .key import AUTOCAST_MASK, KEYSET_BITS
from .keyset import FUNCTIONALITY_MASK, above, keyset

AUTOCAST_KEYS = AUTOCAST_MASK
LAZY_BITS = keyset("Conjugate", "Negative", "ZeroTensor")  # of tensors whose elements are not what lies in memory

# Note [Flags above the keys]
# What specialised code is made for is a keyset and a few facts about the state. The facts stand as flags in bits above
# those of all keys, so that uniting the state with the arguments' keysets brings them along, and one look-up finds the
# code: `table[(a._keyset | b._keyset | state.keys.added) & state.keys.kept]`.
TRACED, NO_GRAD, INFERENCE, MODES, OWN_POLICIES, *LEVEL_FLAGS = (1 << KEYSET_BITS + i for i in range(13))
FLAGS = TRACED | NO_GRAD | INFERENCE | MODES | OWN_POLICIES | sum(LEVEL_FLAGS)
LEVELS: dict[int, type] = {}  # flag -> the class of transforms of which the innermost is one; layers/transforms.py

# The function transforms (vmap, grad, jvp) that are at work here, the innermost last. See Note [Levels in a state].
AT_WORK: ContextVar[tuple[Any, ...]] = ContextVar("transforms at work", default=())
KEYS_MASK = (1 << KEYSET_BITS) - 1


class StateKeys:
    """The keys that a state adds to those of a call, and then takes away. Interned: see `state_keys`.

    by_mode: whether a public function first asks a function mode. slow: for that, or a swap, it takes no fast path.
    """

    __slots__ = ("added", "kept", "by_mode", "slow")

    def __init__(self, added: int, kept: int, by_mode: bool, swapped: bool = False) -> None:
        self.added, self.kept, self.by_mode, self.slow = added, kept, by_mode, by_mode or swapped

    def __repr__(self) -> str:
        return f"StateKeys(added={self.added:#x}, kept={self.kept:#x}, by_mode={self.by_mode})"


# States come and go with each `with`; those that treat keysets alike share one object, so that code which was found in
# one is known by it in the next (specialiser/site.py).
state_keys = functools.lru_cache(1 << 12)(StateKeys)


class Steps:
    """Changes of a state that follow each other, (method, arguments) each: specialised code asks for them at once."""

    __slots__ = ("steps",)

    def __init__(self, steps: tuple[tuple[str, tuple[Any, ...]], ...]) -> None:
        self.steps = steps


class LevelKind(NamedTuple):
    """The facts of a transform that a state holds.

    Note [Levels in a state]
    Each use of a transform is an object of its own, and wrappers tell by it whose they are. Did states hold it, each
    use would derive all its states anew, which takes longer than what is called in them. So a state holds of what
    kind its transforms are, `AT_WORK` the objects, and the state's depth says which of them is the innermost to it.
    """

    flag: int  # of the class
    records_outside: bool = True  # whether calls were recorded where it was entered
    passes_back: bool = False  # whether it runs its own backward, which it need not record; what is outside does


def remembered(change: Callable[[Any], State]) -> Callable[[Any], State]:
    """Decorates a change that takes no arguments: a state works it out once."""
    name = change.__name__

    @functools.wraps(change)
    def changed(state: State) -> State:
        found = state.memo.get(name)
        if found is None:
            found = state.memo[name] = change(state)
        return found

    return changed


class State:
    """One value of the dispatch state. Change it by `replace`, which returns another value."""

    included: int  # keyset added to that of the arguments
    excluded: int  # keyset taken away last; it wins over `included`
    modes: tuple[Any, ...]  # dispatch modes, the innermost last
    pre_dispatch_modes: tuple[Any, ...]  # those of the key PreDispatch, which see calls before all layers
    displaced: tuple[tuple[Any, Any], ...]  # (infra mode entered, the one whose slot it took or None), in turn
    function_modes: tuple[Any, ...]  # function modes, the innermost last
    overrides: str  # who may override a function: "all", "modes" (no subclass) or "none"
    skips_hop: bool  # whether the next function that asks for overrides is told that there are none
    showing: bool  # whether an override of `__repr__` is at work: what it shows is shown plainly
    grad_enabled: bool  # whether Autograd records
    inference: bool  # whether new tensors are inference tensors
    autocast_dtypes: Mapping[str, Any]  # device type -> dtype: what autocast casts to there; never changed in place
    autocast_cache: Any  # the casts made in the outermost autocast region, or None
    autocast_keeps: bool  # whether casts are kept there
    autocast_nesting: int  # how many autocast regions are entered
    autocast_policies: tuple[Any, ...]  # what regions say of single operators, the innermost last
    entry: State | None  # the state in which the running operator was called by the user
    tracer: Any  # what records every hop, or None
    levels: tuple[LevelKind, ...]  # what is to be known of the transforms at work, the innermost last: the note below
    dual_level: Any  # the level of forward mode that is entered, or None
    reapply_views: bool  # whether views of values stay views under functionalization, or are copies
    outside: State | None  # while the innermost of them is at work on a call: the state for what is outside of it

    _FIELDS = tuple(__annotations__)
    swaps: tuple[Any, ...]  # parts of the library that are swapped, the innermost last: ../swap.py
    keys: StateKeys  # added: `included` with the flags, Note [Flags above the keys]; kept: all but `excluded`
    inner: int  # the place of the innermost transform among those at work; -1 where there is none
    plain: dict[int, Any]  # ids of the classes of tensors that have no say in a call: Note [Plain classes of tensors]
    by_default: dict[int, Any]  # ids of those that answer by the default, where nobody else is asked: the same note
    memo: dict[Any, Any]  # what `excluding` and other frequent changes have answered

    def replace(self, **changes: Any) -> State:
        """This state with some fields changed."""
        fields = {**vars(self), **changes, "memo": {}}
        if len(fields) != len(vars(self)):
            unknown = ", ".join(changes.keys() - set(State._FIELDS))
            raise TypeError(f"State has no field {unknown}; it has {', '.join(State._FIELDS)}")
        _derive(fields)
        new = object.__new__(State)
        vars(new).update(fields)  # at once: field by field costs ten times as much, at every mode and every no_grad
        return new

    def excluding(self, keys: int) -> State:
        """This state with `keys`' functionalities excluded too. Remembered, since every layer asks for it."""
        found = self.memo.get(keys)
        if found is None:
            excluded = self.excluded | keys & FUNCTIONALITY_MASK
            if excluded == self.excluded:
                return self  # not remembered: a state that holds itself is freed by the garbage collector alone
            found = self.memo[keys] = self.replace(excluded=excluded)
        return found

    def with_grad(self, enabled: bool) -> State:
        """This state with recording on or off. Remembered, since `no_grad` and each backward pass ask for it.

        The other one leads back here by a weak reference, so that turning recording on and off makes no new states.
        """
        if self.grad_enabled is enabled:
            return self
        memo = self.memo
        found = memo.get("grad")
        if found is None:
            origin = memo.get("origin")
            found = origin() if origin is not None else None
            if found is None:
                found = memo["grad"] = self.replace(grad_enabled=enabled)
                found.memo["origin"] = weakref.ref(self)
        return found

    def after(self, steps: Steps) -> State:
        """This state after several changes, remembered as one."""
        found = self.memo.get(steps)
        if found is None:
            found = self
            for name, arguments in steps.steps:
                found = getattr(found, name)(*arguments)
            if found is not self:
                self.memo[steps] = found
        return found

    @remembered
    def entered(self) -> State:
        """This state, remembered as the one in which the user made the call that is on its way down."""
        return self.replace(entry=self)

    @remembered
    def answering(self) -> State:
        """The state in which the innermost dispatch mode answers: itself popped, and all keys above Python excluded."""
        return with_modes(self.excluding(ABOVE_PYTHON), self.modes[:-1])

    @remembered
    def answering_before(self) -> State:
        """The state in which the innermost mode of the key PreDispatch answers: itself popped, and no key excluded."""
        return with_pre_dispatch_modes(self, self.pre_dispatch_modes[:-1])

    @remembered
    def answering_function(self) -> State:
        """The state in which the innermost function mode answers: itself popped."""
        return self.replace(function_modes=self.function_modes[:-1])

    def without_subclasses(self) -> State:
        """The state in which no class overrides functions. Remembered, since each default `__torch_function__` asks."""
        if self.overrides != "all":
            return self
        found = self.memo.get("without subclasses")
        if found is None:
            found = self.memo["without subclasses"] = self.replace(overrides="modes")
        return found

    def under(self, kind: LevelKind) -> State:
        """This state with one more transform at work, the innermost."""
        found = self.memo.get(kind)
        if found is None:
            found = self.memo[kind] = self.replace(
                levels=(*self.levels, kind), included=self.included | TRANSFORM_FRONT
            )
        return found

    @remembered
    def outer(self) -> State:
        """The state in which what is outside of the innermost transform runs.

        It records if it did where the transform was entered, and no `no_grad` is at work inside.
        """
        *rest, level = self.levels
        included = self.included if rest else self.included & ~TRANSFORM_FRONT
        records = level.records_outside and (self.grad_enabled or level.passes_back)
        return self.replace(levels=tuple(rest), included=included, grad_enabled=records)

    @remembered
    def passing_back(self) -> State:
        """The state in which the innermost transform runs its own backward, and does not record it."""
        *rest, level = self.levels
        level = LevelKind(level.flag, self.outer().grad_enabled, True)
        return self.replace(levels=(*rest, level), grad_enabled=False)

    @property
    def innermost(self) -> Any:
        """The transform that takes calls made in this state, or None."""
        return AT_WORK.get()[self.inner] if self.levels else None

    @remembered
    def differentiating(self) -> State:
        """The state in which the innermost transform, one that differentiates, has the layers of autograd at work."""
        return self.replace(
            included=TRANSFORM_BACK,
            excluded=self.excluded & ~AUTOGRAD_LAYERS | NOT_DIFFERENTIATING,  # inference mode leaves those out
            outside=self.outer(),
        )

    def functionalizing(self, reapply_views: bool) -> State:
        """The state in which the innermost transform, one that functionalizes, has the layer Functionalize at work."""
        found = self.memo.get(("functionalizing", reapply_views))
        if found is None:
            found = self.memo["functionalizing", reapply_views] = self.replace(
                included=FUNCTIONALIZE_AND_BACK,
                excluded=FUNCTIONALITY_MASK & ~FUNCTIONALIZE_AND_BACK,
                reapply_views=reapply_views,
                outside=self.outer(),
            )
        return found

    @property
    def own_policies(self) -> bool:
        """Whether an autocast region has policies of its own."""
        return bool(self.autocast_policies)

    def forget(self) -> None:
        """Drops what was remembered: states that hold this one would be freed by the garbage collector alone."""
        self.memo.clear()

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a dispatch state is immutable; use replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a dispatch state is immutable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and all(getattr(self, f) == getattr(other, f) for f in State._FIELDS)

    __hash__ = None  # type: ignore[assignment]  # compared in tests, never a key

    def __repr__(self) -> str:
        changed = [f for f in State._FIELDS if getattr(self, f) != getattr(DEFAULT, f)]
        return f"State({', '.join(f'{f}={getattr(self, f)!r}' for f in changed)})"


# Note [Plain classes of tensors], in override.py, which fills them: the classes that have no say in a call where
# classes may override, and where they may not; and those that override by the default.
PLAIN_TENSORS: dict[int, weakref.ref[type]] = {}
SILENT_TENSORS: dict[int, weakref.ref[type]] = {}
DEFAULT_TENSORS: dict[int, weakref.ref[type]] = {}
NO_TENSORS: dict[int, weakref.ref[type]] = {}


def _derive(fields: dict[str, Any]) -> None:
    """Sets `keys`, `plain` and `by_default`, which follow from the other fields."""
    fields["plain"] = PLAIN_TENSORS if fields["overrides"] == "all" else SILENT_TENSORS
    asks_classes_only = fields["overrides"] == "all" and not fields["function_modes"] and fields["tracer"] is None
    fields["by_default"] = DEFAULT_TENSORS if asks_classes_only else NO_TENSORS
    flags = TRACED if fields["tracer"] is not None or fields["swaps"] else 0
    if not fields["grad_enabled"]:
        flags |= NO_GRAD
    flags |= INFERENCE if fields["inference"] else 0
    if fields["modes"]:
        flags |= MODES
    if fields["autocast_policies"]:
        flags |= OWN_POLICIES
    fields["inner"] = len(fields["levels"]) - 1
    if fields["levels"]:
        flags |= fields["levels"][-1].flag
    by_mode = bool(fields["function_modes"]) and fields["overrides"] != "none"
    kept = (KEYS_MASK | FLAGS) & ~fields["excluded"]
    fields["keys"] = state_keys(fields["included"] | flags, kept, by_mode, bool(fields["swaps"]))


DEFAULT = object.__new__(State)
vars(DEFAULT).update(
    included=keyset("BackendSelect", "ADInplaceOrView"),
    excluded=AUTOCAST_KEYS,
    modes=(),
    pre_dispatch_modes=(),
    displaced=(),
    function_modes=(),
    overrides="all",
    skips_hop=False,
    showing=False,
    grad_enabled=True,
    inference=False,
    autocast_dtypes=MappingProxyType({}),
    autocast_cache=None,
    autocast_keeps=True,
    autocast_nesting=0,
    autocast_policies=(),
    entry=None,
    tracer=None,
    swaps=(),
    levels=(),
    dual_level=None,
    reapply_views=True,
    outside=None,
    memo={},
)
_derive(vars(DEFAULT))

# What an active dispatch mode adds to every call: the key at which it is asked, and the key that remembers the state
# in which the user made the call.
PYTHON_KEYS = keyset("Python", "PythonTLSSnapshot")
# What a handler has not to see again. A lazy bit is there whoever calls: a handler may meet it on what it holds.
ABOVE_PYTHON = above("Python") & ~LAZY_BITS

# What function transforms need: the key at which the innermost one takes every call, and the key at which it hands a
# call on to what is outside of it. Between the two a transform that differentiates has autograd's layers to itself.
TRANSFORM_FRONT = keyset("FuncTorchDynamicLayerFrontMode")
TRANSFORM_BACK = keyset("ADInplaceOrView", "FuncTorchDynamicLayerBackMode")
FUNCTIONALIZE_AND_BACK = keyset("Functionalize", "FuncTorchDynamicLayerBackMode")
AUTOGRAD_LAYERS = FUNCTIONALITY_MASK & keyset("AutogradCPU", "AutogradOther")
NOT_DIFFERENTIATING = FUNCTIONALITY_MASK & ~(TRANSFORM_BACK | AUTOGRAD_LAYERS | AUTOCAST_KEYS)


def with_modes(state: State, modes: tuple[Any, ...]) -> State:
    """`state` with this stack of dispatch modes, and the Python keys included exactly while there is one."""
    included = state.included | PYTHON_KEYS if modes else state.included & ~PYTHON_KEYS
    return state.replace(modes=modes, included=included)


PRE_DISPATCH = keyset("PreDispatch")


def with_pre_dispatch_modes(state: State, modes: tuple[Any, ...]) -> State:
    """Returns a state with other modes on the stack of the key PreDispatch."""
    included = state.included | PRE_DISPATCH if modes else state.included & ~PRE_DISPATCH
    return state.replace(pre_dispatch_modes=modes, included=included)


STATE: ContextVar[State] = ContextVar("redispatch state", default=DEFAULT)


class within:
    """`with within(state):` runs the block in that state and puts the former one back."""

    __slots__ = ("state", "token")

    def __init__(self, state: State) -> None:
        self.state = state

    def __enter__(self) -> None:
        self.token = STATE.set(self.state)

    def __exit__(self, *error: object) -> None:
        STATE.reset(self.token)
