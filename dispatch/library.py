"""Libraries: how operators are defined, kernels registered and fallbacks set, and how all of it is undone.

A `Library` is a handle on everything registered through it. Destroying it (by `_destroy()`, by leaving its `with`
block or by losing the last reference) removes exactly its own entries, in any order relative to other libraries: where
it had overridden a kernel, the one below answers again.

Read next: layers/__init__.py.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from functools import partial
from typing import Any

from .core.key import DispatchKey, key_named
from .core.operator import OpOverload
from .core.registry import OPERATORS, Undo, add_fallback, add_operator, remove_fallback, remove_operator
from .core.table import Kernel
from .errors import RegistrationError
from .kernel_conventions import box, box_fallback, fallthrough
from .namespaces import operator_named
from .rules import caller
from .schema.parser import parse_schema
from .schema.schema import FunctionSchema
from .schema.text import SchemaText

RESERVED = ("prim",)
_DEFINING: dict[str, str] = {}  # namespace -> place of its one DEF library


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """Register this as a kernel to have a key skipped, at no cost when a call runs."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(
    schema: FunctionSchema | SchemaText | str, tags: Iterable[Any] = (), place: str = ""
) -> tuple[OpOverload, Undo]:
    """A new operator, and what removes it again. SchemaError or RegistrationError where it cannot be."""
    op = operator_of(schema, tags, place)
    return op, add_operator(op)


def operator_of(schema: FunctionSchema | SchemaText | str, tags: Iterable[Any], place: str) -> OpOverload:
    """Returns an operator that is not registered yet."""
    if isinstance(schema, str):
        schema = parse_schema(schema, allow_typevars=False)
    if "::" not in schema.name:
        raise RegistrationError(f"the schema {schema} names no namespace; write 'mylib::{schema.name}'")
    return OpOverload(schema, tags, place)


def impl(
    op: OpOverload,
    key: DispatchKey | str,
    function: Callable[..., Any],
    *,
    convention: str,
    place: str,
    library: str = "",
    name: str = "",
) -> Undo:
    """Registers `function` as the kernel of `op` at `key`; see boxing.py for the conventions.

    `name` is how traces call the kernel, where the function's own name says little.
    """
    return op.register(key, kernel_of(op, function, convention, place, library, name))


def kernel_of(
    op: OpOverload, function: Callable[..., Any], convention: str, place: str, library: str, name: str = ""
) -> Kernel:
    """Returns a kernel of `op` that is not registered yet."""
    if function is fallthrough_kernel:
        return fallthrough(place, library)
    return Kernel(function, box(function, op, convention), convention, place, library, name)


class Library:
    """A handle on registrations: `Library("mylib", "FRAGMENT")`.

    `kind` is "DEF" (owns the namespace; one per namespace), "FRAGMENT" (adds operators to any namespace) or "IMPL"
    (kernels for operators that exist; with the namespace "_", fallbacks for all operators). With `dispatch_key`, `impl`
    uses that key where it is given none.

    >>> import redispatch as rd
    >>> from redispatch.library import Library
    >>> lib = Library("doc", "FRAGMENT")
    >>> _ = lib.define("half(Tensor x) -> Tensor")
    >>> _ = lib.impl("half", lambda x: x / 2, "CPU")
    >>> rd.ops.doc.half(rd.ones(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: DispatchKey | str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Undo] = []
        self._finalizer = weakref.finalize(self, _undo_all, self._undo)
        self._finalizer.atexit = False
        place = caller()
        if kind == "DEF":
            self._own_namespace(place)

    def _own_namespace(self, place: str) -> None:
        if self.ns in _DEFINING:
            raise RegistrationError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {self.ns}; please put all of your "
                "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  Previous registration of TORCH_LIBRARY "
                f"was registered at {_DEFINING[self.ns]}; latest registration was registered at {place}"
            )
        self._undo.append(partial(_disown, self.ns, place))  # without `self`, which it would keep alive
        _DEFINING[self.ns] = place

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, without the namespace; returns its name."""
        if self.kind == "IMPL":
            raise RegistrationError(f"{self!r} cannot define {schema!r}: kind IMPL only implements; use FRAGMENT")
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        name = schema.split("(")[0].strip()
        if "::" in name:
            namespace = name.split("::")[0]
            if namespace != self.ns:
                raise RegistrationError(f"{self!r} cannot define {name!r}, which is of the namespace {namespace!r}")
            schema = schema.strip()[len(namespace) + 2 :]
        tags = tags if isinstance(tags, list | tuple) else (tags,)
        op = operator_of(f"{self.ns}::{schema.strip()}", tags, caller())
        self._enter(partial(remove_operator, op), partial(add_operator, op))
        return op.qualified_name.split("::")[1]

    def impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: DispatchKey | str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers `fn`, written with the schema's parameters, as the kernel of an operator at a key.

        The newest kernel answers, with a warning that names the one it overrides; when its library is destroyed, the
        former answers again. Errors: RegistrationError where the operator does not exist, or where this key has a
        kernel registered from Python and `allow_override` is False; a meta kernel for a CompositeImplicitAutograd
        operator.
        """
        self._impl(op_name, fn, dispatch_key, caller(), with_keyset, allow_override)

    def _impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: DispatchKey | str,
        place: str,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """`impl` for a registration that was written at `place`."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        op = self._operator(op_name)
        key = key_named(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        if self.dispatch_key and key is not key_named(self.dispatch_key):
            raise RegistrationError(
                f"Explicitly provided dispatch key ({key.name}) is inconsistent with the dispatch key of the enclosing "
                f"library ({self.dispatch_key}). Please declare a separate Library for this dispatch key and move your "
                "kernel there."
            )
        self._check_meta(op, key)
        former = next(reversed(op.registrations.get(key, ())), None)
        if former is not None and not _same_definition(former, fn):
            if former.library and not allow_override:
                raise RegistrationError(
                    f"This is not allowed since there's already a kernel registered from python overriding "
                    f"{op._opname}'s behavior for {key.name} dispatch key and {self.ns} namespace. The former one is "
                    f"at {former.place}, the new one at {place}; pass allow_override=True to override it"
                )
            warnings.warn(overriding(op, key, former, place), UserWarning, stacklevel=3)
        convention = "keyset" if with_keyset else "python"
        kernel = kernel_of(op, fn, convention, place, self.ns)
        self._enter(partial(op.unregister, key, kernel), partial(op.register, key, kernel))

    def _operator(self, name: str | OpOverload) -> OpOverload:
        if isinstance(name, OpOverload):
            name = name.qualified_name
        return operator_named(name if "::" in name else f"{self.ns}::{name}")

    def _check_meta(self, op: OpOverload, key: DispatchKey) -> None:
        if key is DispatchKey.Meta and op.has_kernel_for_dispatch_key("CompositeImplicitAutograd"):
            raise RegistrationError(
                f"We should not register a meta kernel directly to the operator '{op.name()}', because it has a "
                "CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and ensure "
                "that we have meta kernels for the base ops that it decomposes into."
            )

    def fallback(
        self, fn: Callable[..., Any], dispatch_key: DispatchKey | str = "", *, with_keyset: bool = False
    ) -> None:
        """Registers `fn(op, *args, **kwargs)` as what answers at a key for every operator that has nothing there."""
        if self.ns != "_":
            raise RuntimeError(
                "Fallback can only be registered using library fragment on the global namespace "
                f'"_" but it is {self.ns}'
            )
        if not (dispatch_key or self.dispatch_key):
            raise ValueError("a fallback needs a dispatch key")
        key = key_named(dispatch_key or self.dispatch_key)
        place = caller()
        if fn is fallthrough_kernel:
            kernel = fallthrough(place, self.ns)
        else:
            kernel = Kernel(fn, box_fallback(fn, with_keyset), "fallback", place, self.ns)
        self._enter(partial(remove_fallback, key, kernel), partial(add_fallback, key, kernel))

    def _enter(self, undo: Undo, enter: Callable[[], object]) -> None:
        """Registers something, and has it undone with the library, or at once where that fails or is interrupted.

        `undo` is kept first, so that nothing is ever registered that the library does not know of.
        """
        self._undo.append(undo)
        try:
            enter()
        except BaseException:
            undo()
            raise

    @property
    def m(self) -> Library:
        """The holder of the registrations, which PyTorch keeps in C++: `del library.m` removes them."""
        return self

    @m.deleter
    def m(self) -> None:
        self._destroy()

    def undo_with(self, undo: Undo | None) -> None:
        """Has `undo` called, too, when the library is destroyed: for rules that belong to its operators."""
        if undo is not None:
            self._undo.append(undo)

    def _destroy(self) -> None:
        """Removes everything that was registered through this library."""
        _undo_all(self._undo)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *error: object) -> None:
        self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


def _disown(ns: str, place: str) -> None:
    if _DEFINING.get(ns) is place:  # and not claimed anew in the meantime
        del _DEFINING[ns]


def _undo_all(undo: list[Undo]) -> None:
    while undo:
        undo[-1]()  # each may be called twice: where it is interrupted, it is not yet taken off
        undo.pop()


def overriding(op: OpOverload, key: DispatchKey, former: Kernel, place: str) -> str:
    """Returns the warning about a kernel that takes the place of another."""
    return (
        "Overriding a previously registered kernel for the same operator and the same dispatch key\n"
        f"  operator: {op.schema}\n    defined at {op.place}\n  dispatch key: {key.name}\n"
        f"  previous kernel: registered at {former.place}\n       new kernel: registered at {place}"
    )


def _same_definition(former: Kernel, function: Callable[..., Any]) -> bool:
    """Whether a function is the former one written again, as when a notebook's cell is run twice."""
    a, b = former.function, function
    return (getattr(a, "__qualname__", a), getattr(a, "__module__", a)) == (
        getattr(b, "__qualname__", b),
        getattr(b, "__module__", b),
    ) and "<lambda>" not in getattr(b, "__qualname__", "<lambda>")


@contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Any:
    """`with _scoped_library("mylib", "FRAGMENT") as lib:` destroys the library at the end of the block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


def own_namespace(ns: str) -> None:
    """Claims a namespace for the library itself, so that a user's DEF of it is refused."""
    _DEFINING[ns] = caller()


def operators() -> list[OpOverload]:
    """Every operator that is defined now."""
    return list(OPERATORS.values())
