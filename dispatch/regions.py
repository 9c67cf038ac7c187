"""Regions of users' code in which the dispatch state differs: `with no_grad():`, and the same as a decorator.

Note [Two ways to change the state]
`within(state)` is for the library's own strictly nested regions: it puts the whole former value back.
`Setting(field=value)` is for users' regions (`no_grad()` and the like), which can overlap: a generator may be
suspended inside one. It puts back its own fields only, and as a decorator on a generator it is entered anew for
each step.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from .core.keyset import FUNCTIONALITY_MASK
from .core.state import STATE, State


class Region:
    """A region of the user's code that is also a decorator: `with no_grad():`, `@no_grad()`.

    On a generator function, asynchronous or not, the region is entered anew for each step, so that its state never
    leaks to the caller while the generator is suspended. On a class it is that of `__init__` alone, with a warning.
    On a coroutine function it holds while the coroutine runs, which is a
    matter of its own task alone. A subclass gives `__enter__`, `__exit__` and `clone`.
    """

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *error: Any) -> Any:
        raise NotImplementedError

    def clone(self) -> Region:
        """A region like this one, for one call of the decorated function."""
        raise NotImplementedError

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isclass(function):
            return self._constructor_of(function)
        if inspect.isasyncgenfunction(function):
            return self._each_step_of_a_task(function)
        if inspect.isgeneratorfunction(function):
            return self._each_step(function)
        if inspect.iscoroutinefunction(function):
            return self._until_done(function)

        @functools.wraps(function)
        def in_region(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return function(*args, **kwargs)

        return in_region

    def _constructor_of(self, kind: Any) -> Any:
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
            "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
            "the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
        kind.__init__ = Region.__call__(self, kind.__init__)
        return kind

    def _until_done(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def until_done(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return await function(*args, **kwargs)

        return until_done

    def _each_step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def step_by_step(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                generator = function(*args, **kwargs)
            resume: Callable[[], Any] = functools.partial(next, generator)
            while True:
                try:
                    with self.clone():
                        item = resume()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                except GeneratorExit:
                    with self.clone():
                        generator.close()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.throw, error)
                else:
                    resume = functools.partial(generator.send, sent)

        return step_by_step

    def _each_step_of_a_task(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def step_by_step(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                generator = function(*args, **kwargs)
            resume: Callable[[], Any] = generator.__anext__
            while True:
                try:
                    with self.clone():
                        item = await resume()
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    with self.clone():
                        await generator.aclose()
                    raise
                except BaseException as error:
                    resume = functools.partial(generator.athrow, error)
                else:
                    resume = functools.partial(generator.asend, sent)

        return step_by_step


class Setting(Region):
    """A region that changes some fields of the state, and puts back those fields alone.

    A change is a value, or a function of the present state that gives one.
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._entered: list[tuple[State, State]] = []  # the state before and inside, for each time it is active

    def __enter__(self) -> Any:
        before = STATE.get()
        inside = before.replace(**{f: v(before) if callable(v) else v for f, v in self._changes.items()})
        self._entered.append((before, inside))
        STATE.set(inside)
        return self

    def __exit__(self, *error: Any) -> None:
        before, inside = self._entered.pop()
        state = STATE.get()
        if state is inside:  # as nearly always: then the state before is what is left, with what it remembers
            STATE.set(before)
            inside.forget()
        else:
            STATE.set(state.replace(**{field: getattr(before, field) for field in self._changes}))

    def clone(self) -> Setting:
        return Setting(**self._changes)


def include(keys: int) -> Setting:
    """A region in which `keys` belong to every call.

    >>> import redispatch as rd
    >>> from redispatch.dispatch import define_key, impl, include
    >>> key = define_key("Doc", above="Python")
    >>> _ = impl(rd.ops.aten.relu.default, "Doc", lambda x: x, convention="python", place="here")
    >>> x = rd.tensor([-1.0])
    >>> with include(key.bits):
    ...     rd.relu(x)
    tensor([-1.])
    """
    return Setting(included=lambda state: state.included | keys)


def exclude(keys: int) -> Setting:
    """A region in which no call stops at `keys`' functionalities."""
    return Setting(excluded=lambda state: state.excluded | keys & FUNCTIONALITY_MASK)


def force(included: int, excluded: int) -> Setting:
    """A region with exactly these keysets included and excluded."""
    return Setting(included=included, excluded=excluded & FUNCTIONALITY_MASK)
