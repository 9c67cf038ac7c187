"""`__torch_function__` and function modes: what happens to a call before it reaches the dispatcher.

Every public function asks `overridden` first. A call is overridden when a function mode is active, or when an
argument's class has a `__torch_function__` of its own; then `handle_torch_function` asks the innermost mode (with
that mode popped), or else the arguments' classes, subclass before superclass and otherwise from left to right,
until one does not answer NotImplemented. A class opts out by `__torch_function__ = _disabled_torch_function_impl`.

Read next: dispatch/entry/fast_paths.py (calls that need not ask), dispatch/core/operator.py.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from types import MethodType
from typing import TYPE_CHECKING, Any

from ..core.base import TensorBase
from ..core.state import DEFAULT_TENSORS, PLAIN_TENSORS, SILENT_TENSORS, STATE, State, with_modes
from ..regions import Setting

# Classes which take part in calls without overriding them: the exact types that `overridden` passes at a glance.
PLAIN_TYPES: set[type] = {int, float, bool, str, complex, type(None)}
HOLDERS = (list, tuple)  # what is in them may override
_HEAP_TYPE = 1 << 9  # the flag of classes written in Python: they may be given a `__torch_function__` later


def not_handled(text: str) -> TypeError:
    """The error where every handler that was asked answered NotImplemented. Python's operators go on to the other
    operand then; users see what PyTorch raises, a TypeError and no class of its own."""
    error = TypeError(text)
    error.is_not_handled = True  # type: ignore[attr-defined]  # a mark of ours on Python's object
    return error


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Calls the function itself: a class sets this as its `__torch_function__` to take no part in overriding."""
    token = STATE.set(STATE.get().without_subclasses())
    try:
        return func(*args, **(kwargs or {}))
    finally:
        STATE.reset(token)


# Classes of tensors that override nothing ---------------------------------------------------------------------------

# Note [Plain classes of tensors]
# Tensor is known by sight. A subclass that opted out (Parameter, most wrappers) is asked once; then its id stands in
# PLAIN_TENSORS until its attributes change, which its metaclass notices, or until it is gone. Where no class may
# override, as in a default `__torch_function__`, every class is taken as Tensor is; its id stands in SILENT_TENSORS.
# `state.plain` is the one or the other (state.py). A class that inherits the default is known, too, in DEFAULT_TENSORS:
# what the default does need not be asked of it.
_PLAIN_LOCK = threading.RLock()  # an answer and its entry must not be parted by a change of the class

# The function of Tensor's `__torch_function__`, which subclasses inherit; filled by the room `tensor`.
DEFAULT_HANDLER: list[Callable[..., Any]] = []
# What takes the place of a `__torch_function__` for tensor-likes; filled by the room `tensor`.
TENSOR_LIKE: list[Callable[..., Any]] = []

# called with a class of tensors whose `__torch_function__` or `__torch_dispatch__`, or whose bases, were set or deleted
HANDLER_CHANGED: list[Callable[[type], None]] = []
_WATCHED = ("__torch_function__", "__torch_dispatch__", "__bases__")


class TensorMeta(type):
    """The class of Tensor and its subclasses: it notices a handler that a class is given, or loses, later."""

    if TYPE_CHECKING:

        def __getattr__(cls, name: str) -> Any: ...  # the room `ops` attaches most methods

    else:  # type checkers would take it that any attribute may be set on Tensor

        def __setattr__(cls, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name in _WATCHED:
                handler_changed(cls)

        def __delattr__(cls, name: str) -> None:
            super().__delattr__(name)
            if name in _WATCHED:
                handler_changed(cls)


def handler_changed(kind: type) -> None:
    """Forgets what was known of a class and its subclasses, and tells who asked to be told."""
    with _PLAIN_LOCK:
        for one in (kind, *subclasses_of(kind)):
            PLAIN_TENSORS.pop(id(one), None)
            DEFAULT_TENSORS.pop(id(one), None)
    for tell in HANDLER_CHANGED:
        tell(kind)


def subclasses_of(kind: type) -> Iterable[type]:
    """The subclasses of a class, theirs included."""
    below: list[type] = type.__subclasses__(kind)
    for one in below:
        yield one
        yield from subclasses_of(one)


_NEVER_PLAIN: weakref.WeakSet[type] = weakref.WeakSet()


def never_plain(kind: type) -> None:
    """Keeps a class of tensors out of PLAIN_TENSORS: its methods and properties have to be looked at."""
    with _PLAIN_LOCK:
        _NEVER_PLAIN.add(kind)
        for known in (PLAIN_TENSORS, SILENT_TENSORS, DEFAULT_TENSORS):
            known.pop(id(kind), None)


def remember_plain(kind: type) -> None:
    """Enters a class in PLAIN_TENSORS if it opted out, in DEFAULT_TENSORS if it inherits the default, where its
    metaclass would notice a change."""
    with _PLAIN_LOCK:
        if kind in _NEVER_PLAIN:
            return
        for base in kind.__mro__:
            if not isinstance(base, TensorMeta):
                return
            if "__torch_function__" in vars(base):
                break
        handler: Any = kind.__torch_function__  # type: ignore[attr-defined]  # an attribute that mypy does not see
        if handler is _disabled_torch_function_impl:
            enter(PLAIN_TENSORS, kind)
        elif getattr(handler, "__func__", None) in DEFAULT_HANDLER and not handles_operators(kind):
            enter(DEFAULT_TENSORS, kind)


def handles_operators(kind: type) -> bool:
    """Whether a class, or one between it and Tensor, says what becomes of operators."""
    return any("__torch_dispatch__" in vars(base) for base in kind.__mro__ if not is_root(base))


def is_root(kind: type) -> bool:
    """Whether a class is Tensor itself, which has a `__torch_dispatch__` for `super()` alone."""
    return isinstance(kind, TensorMeta) and not any(isinstance(base, TensorMeta) for base in kind.__bases__)


def remember_silent(kind: type) -> None:
    """Enters a class of tensors in SILENT_TENSORS."""
    with _PLAIN_LOCK:
        if kind not in _NEVER_PLAIN:
            enter(SILENT_TENSORS, kind)


def enter(known: dict[int, weakref.ref[type]], kind: type) -> None:
    """Enters a class by its id, as long as it lives."""
    key = id(kind)
    known[key] = weakref.ref(kind, lambda gone: known.pop(key, None))


# Who overrides ------------------------------------------------------------------------------------------------------


def overrides(value: Any) -> bool:
    """Whether the class of `value` has a `__torch_function__` of its own."""
    kind = type(value)
    if kind in PLAIN_TYPES or id(kind) in PLAIN_TENSORS or isinstance(value, type):
        return False
    function = getattr(kind, "__torch_function__", None)
    if function is None:
        if not kind.__flags__ & _HEAP_TYPE and kind not in HOLDERS:
            PLAIN_TYPES.add(kind)
        return is_tensor_like(kind)
    if isinstance(kind, TensorMeta) and id(kind) not in DEFAULT_TENSORS:
        remember_plain(kind)
    return function is not _disabled_torch_function_impl


def is_tensor_like(kind: type) -> bool:
    """Whether instances of a class are tensor-likes (tensor_like.py): no tensors, but with a `__torch_dispatch__`, a
    classmethod, that says what operators do with them."""
    return not issubclass(kind, TensorBase) and isinstance(getattr(kind, "__torch_dispatch__", None), MethodType)


def overridden(args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a mode or an argument (inside one level of list or tuple, too) wants this call for itself."""
    return who_overrides(args, kwargs) is not None


def who_overrides(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
    """The arguments that want this call for themselves, perhaps none if a mode does; None if nobody does, or the call
    skips its hop."""
    state = STATE.get()
    if state.skips_hop:
        STATE.set(state.replace(skips_hop=False))
        return None
    if state.overrides == "all":
        found = overriding(args, kwargs)
        return found if found or state.keys.by_mode else None
    for value in (*args, *kwargs.values()) if kwargs else args:
        for item in value if type(value) in HOLDERS else (value,):
            if isinstance(type(item), TensorMeta) and id(type(item)) not in SILENT_TENSORS:
                remember_silent(type(item))
    return [] if state.keys.by_mode else None


def has_torch_function_attribute(value: Any) -> bool:
    """Whether the class of `value` has a `__torch_function__`: its own, or that of plain tensors."""
    kind = type(value)
    if isinstance(kind, TensorMeta):
        return getattr(kind, "__torch_function__", None) is not _disabled_torch_function_impl
    return overrides(value)


def given_tensor_likes(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """Every argument, inside one level of list or tuple too, whose class has a `__torch_function__`."""
    items = [
        item for value in (*args, *kwargs.values()) for item in (value if isinstance(value, HOLDERS) else (value,))
    ]
    return [item for item in items if has_torch_function_attribute(item)]


def overriding(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments that override, in order; of several of one class that follow each other, the first."""
    found: list[Any] = []
    former = None
    for value in (*args, *kwargs.values()) if kwargs else args:
        kind = type(value)
        if kind is former or kind in PLAIN_TYPES or id(kind) in PLAIN_TENSORS:
            continue
        if isinstance(value, HOLDERS):
            found += [item for item in value if overrides(item)]
        elif overrides(value):
            found.append(value)
            former = kind
    return found


def one_per_type(values: Sequence[Any]) -> list[Any]:
    """One value for each distinct type, a subclass before its superclasses, otherwise from left to right."""
    if len(values) == 1:  # as nearly always
        return [*values]
    chosen: list[Any] = []
    for value in values:
        kind = type(value)
        place = len(chosen)
        for i, one in enumerate(chosen):
            if type(one) is kind:
                break
            if issubclass(kind, type(one)):
                place = min(place, i)
        else:
            chosen.insert(place, value)
    return chosen


def handle_torch_function(public: Callable[..., Any], relevant: Iterable[Any], /, *args: Any, **kwargs: Any) -> Any:
    """The overridden result of `public(*args, **kwargs)`, where `relevant` are the arguments that may override.

    Errors: TypeError where every handler answers NotImplemented.
    """
    return ask(public, [value for value in relevant if has_torch_function_attribute(value)], args, kwargs)


def call_overridden(public: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls the handlers of a function that is a builtin in PyTorch: they get None in the place of no keyword
    arguments."""
    return ask(public, overriding(args, kwargs), args, kwargs or None)


def asks(function: Any, name: str = "") -> Any:
    """Marks a Python function that asks for overrides itself; with the name that messages give it, if it has another
    one than Python knows."""
    function.__overridable__ = name or f"{function.__module__}.{function.__qualname__}"
    return function


def ask_function_mode(public: Callable[..., Any], state: State, args: tuple[Any, ...]) -> Any:
    """`call_overridden` in a state whose function modes are asked, for arguments that have no say, and no keywords."""
    if state.tracer is not None:
        return ask(public, (), args, None)
    token = STATE.set(state.memo.get("answering function") or state.answering_function())
    try:
        result = state.function_modes[-1].__torch_function__(public, (), args, None)
    finally:
        STATE.reset(token)
    if result is NotImplemented:
        raise _none_answered(public, (), state, None)
    return result


def ask(public: Callable[..., Any], relevant: Sequence[Any], args: tuple[Any, ...], kwargs: Any) -> Any:
    """Asks the innermost mode, then the classes of those that override, until one does not answer NotImplemented."""
    state = STATE.get()
    handlers = one_per_type(relevant) if state.overrides == "all" else []
    types = (*map(type, handlers),)
    if state.function_modes and state.overrides != "none":
        mode = state.function_modes[-1]
        token = STATE.set(state.answering_function())
        try:
            result = _answer(type(mode), mode.__torch_function__, public, types, args, kwargs)
        finally:
            STATE.reset(token)
        if result is not NotImplemented:
            return result
    for value in handlers:
        handler = getattr(value, "__torch_function__", None) or TENSOR_LIKE[0]
        if getattr(handler, "__self__", None) is value:
            warn_of_plain_method(type(value), kwargs)
        if not isinstance(type(value), TensorMeta):
            result = asked_once(type(value), partial(_answer, type(value), handler), public, types, args, kwargs)
        elif state.tracer is None:
            result = handler(public, types, args, kwargs)
        else:
            result = _answer(type(value), handler, public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    raise _none_answered(public, types, state, kwargs)


def _answer(kind: type, handler: Any, public: Any, types: tuple[type, ...], args: tuple[Any, ...], kwargs: Any) -> Any:
    """Returns the answer of a handler of a mode or a class; a trace is told of it."""
    tracer = STATE.get().tracer
    if tracer is None:
        return handler(public, types, args, kwargs)
    given = [*(("", value) for value in args), *(kwargs or {}).items()]
    return tracer.asked(
        kind.__name__, "__torch_function__", handler, public, given, lambda: handler(public, types, args, kwargs)
    )


# Note [Handlers that hand a call back]
# The tensors of another library may have a `__torch_function__`, too, whose default answer is to run the function with
# that library's overriding off, which says nothing to ours: the same call would come back without end. So a handler
# that is not one of our classes' is not asked a question that it is answering.
_ASKED: ContextVar[tuple[Any, ...]] = ContextVar("questions that foreign handlers are answering", default=())


def asked_once(
    kind: type, handler: Callable[..., Any], public: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: Any
) -> Any:
    """Returns the answer of `__torch_function__` of `kind`; NotImplemented where it is answering this very call
    already."""
    question = (kind, public, *map(id, args))
    if question in _ASKED.get():
        return NotImplemented
    token = _ASKED.set((*_ASKED.get(), question))
    try:
        return handler(public, types, args, kwargs)
    finally:
        _ASKED.reset(token)


def warn_of_plain_method(kind: type, kwargs: Any) -> None:
    """Warns of a plain method.

    The warning, and the keyword arguments, depend on whether the function is a builtin in PyTorch.
    """
    warnings.warn(
        f"Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please "
        f"define it as a classmethod. (It is a plain method of {kind.__qualname__}.)",
        UserWarning if kwargs is None else DeprecationWarning,
        stacklevel=5,
    )


def _none_answered(public: Callable[..., Any], types: tuple[type, ...], state: State, kwargs: Any) -> TypeError:
    """The error where all handlers answered NotImplemented; in one of two wordings, as in PyTorch."""
    name = named(public)
    mode = state.function_modes[-1] if state.function_modes and state.overrides != "none" else None
    if kwargs is None:
        asked = ([] if mode is None else [f"  - mode object {described(mode)}"]) + [
            f"  - tensor subclass {kind}" for kind in types
        ]
        return not_handled(
            f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
            + "\n".join(asked)
            + f"\n\nTo fix this, answer {name} in one of them, or call it on what they hold."
        )
    asked_too = "" if mode is None else f" nor in mode {described(mode)}"
    return not_handled(
        f"no implementation found for '{name}' on types that implement __torch_function__: {list(types)}{asked_too}"
    )


def named(public: Callable[..., Any]) -> str:
    """A function's name for messages: `torch.add`, `torch.Tensor.add`, `torch.Tensor.shape.__get__`."""
    known = getattr(public, "__overridable__", None)
    if known is not None:
        return str(known)
    owner = getattr(public, "__self__", None)
    if isinstance(owner, property):
        return f"torch.Tensor.{getattr(owner.fget, '__name__', 'property')}.{public.__name__}"
    name = getattr(public, "__qualname__", None) or getattr(public, "__name__", public)
    return f"{getattr(public, '__module__', None) or 'torch'}.{name}"


def described(mode: Any) -> str:
    """The `repr` of a mode. It may call functions itself: no mode is asked about those, or it might have no end."""
    token = STATE.set(with_modes(STATE.get(), ()).replace(function_modes=()))
    try:
        return repr(mode)
    except Exception as problem:
        return f"<{type(mode).__qualname__}, whose repr raised {type(problem).__name__}>"
    finally:
        STATE.reset(token)


def without_subclasses() -> Setting:
    """A region in which no class overrides; function modes still do."""
    return Setting(overrides=lambda state: "none" if state.overrides == "none" else "modes")


def without_overrides() -> Setting:
    """A region in which neither class nor mode overrides."""
    return Setting(overrides="none")


# How a call looks to a handler: PyTorch has some of its functions in Python and others in C++, and handlers can tell
#
# call_overridden                 a function in C++ that reads its arguments: they come as they were passed, with None
#                                 where there are no keywords; of the types, those that override
# of_builtin_method               a method in C++ that has none to read: the same, but a plain tensor counts, too
# OfPython                        a function in Python: what must be given comes by position, everything else by
#                                 keyword, with the defaults; plain tensors count among the types


def of_builtin_method(public: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The overridden result of a method whose class alone is asked, whatever the arguments are."""
    return ask(public, given_tensor_likes(args[:1], {}), args, kwargs or None)


def ask_mode_of_builtin_method(public: Callable[..., Any], state: State, args: tuple[Any, ...]) -> Any:
    """Asks function modes about a method of a tensor whose class has no say."""
    return of_builtin_method(public, args, {})


class OfPython:
    """The overridden result of calls of a function that PyTorch has in Python.

    like: a function with its parameters. alone: whether it asks for the class of its first argument and no other.
    by_keyword: whether even that comes by keyword, as do all arguments of `nn.init`.
    """

    def __init__(self, like: Callable[..., Any], alone: bool = False, by_keyword: bool = False) -> None:
        self.like, self.alone, self.by_keyword = like, alone, by_keyword

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.like)

    def __call__(self, public: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """TypeError for arguments that the function does not take."""
        first = args[:1]
        args, kwargs = self.normalized(args, kwargs)
        asked = first if self.alone else given_tensor_likes(args, kwargs)
        return handle_torch_function(public, asked, *args, **kwargs)

    def normalized(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as the function hands them on: required ones by position, others by keyword."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        positions: list[Any] = []
        keywords: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            value = bound.arguments[name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                positions += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                keywords |= value
            elif (
                parameter.default is parameter.empty
                and parameter.kind is not parameter.KEYWORD_ONLY
                and not self.by_keyword
            ):
                positions.append(value)
            else:
                keywords[name] = value
        return tuple(positions), keywords
