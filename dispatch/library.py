"""Libraries: how operators are defined, kernels registered and fallbacks set, and how all of it is undone.

A `Library` is a handle on everything registered through it. Destroying it (by `_destroy()`, by leaving its `with`
block, by losing the last reference, or because the module whose body made it is loaded anew) removes exactly its own
entries, in any order relative to other libraries: where it had overridden a kernel, the one below answers again. A
kernel may come before its operator and outlive it.

Read next: layers/__init__.py.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from .core.key import DispatchKey, key_named
from .core.operator import OpOverload
from .core.registry import (
    LISTENERS,
    LOCK,
    OPERATORS,
    Undo,
    add_fallback,
    add_operator,
    load_late,
    remove_fallback,
    remove_operator,
)
from .core.table import Kernel, Registrations
from .errors import WARNED, RegistrationError
from .kernel_conventions import box, box_fallback, fallthrough
from .namespaces import define_late
from .rules import body, caller, is_own
from .schema.parser import parse_schema
from .schema.schema import FunctionSchema
from .schema.text import SchemaText

RESERVED = ("prim",)
_DEFINING: dict[str, str] = {}  # namespace -> place of its one DEF library
IMPLS: set[str] = set()  # "namespace/operator/key" of each kernel that a library holds, which PyTorch calls `_impls`
ALIAS_ANALYSIS: weakref.WeakKeyDictionary[OpOverload, str] = weakref.WeakKeyDictionary()  # where it was said


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """Register this as a kernel to have a key skipped, at no cost when a call runs."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def define(
    schema: FunctionSchema | SchemaText | str, tags: Iterable[Any] = (), place: str = ""
) -> tuple[OpOverload, Undo]:
    """A new operator, and what removes it again. SchemaError or RegistrationError where it cannot be."""
    op = operator_of(schema, tags, place)
    mine = [] if is_own(place) else body(f"operator {op.qualified_name}")
    mine.append(add_operator(op))
    return op, mine[-1]


def operator_of(schema: FunctionSchema | SchemaText | str, tags: Iterable[Any], place: str) -> OpOverload:
    """Returns an operator that is not registered yet."""
    if isinstance(schema, str):
        schema = parse_schema(schema, allow_typevars=False)
    if "::" not in schema.name:
        raise RegistrationError(f"the schema {schema} names no namespace; write 'mylib::{schema.name}'")
    op = OpOverload(schema, tags, place)
    for registration in REGISTRATIONS.get(op.qualified_name, ()):
        registration.check(op.schema, place)
    return op


# What a selective build makes of a kernel of the library's: the same, one that refuses more, or None (_postponed.py)
SELECTED: list[Callable[[OpOverload, Callable[..., Any]], Callable[..., Any] | None]] = []


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
    for selected in SELECTED:
        kept = selected(op, function)
        if kept is None:
            return lambda: None
        function = kept
    mine = [] if is_own(place) else body()
    mine.append(op.register(key, made(op, function, convention, place, library, name)))
    return mine[-1]


def made(
    op: OpOverload | None, function: Callable[..., Any], convention: str, place: str, library: str = "", name: str = ""
) -> Kernel:
    """Returns `function` as a kernel of `op`; without an operator, as one that can be shown and not called."""
    if function is fallthrough_kernel:
        return fallthrough(place, library)
    return Kernel(function, box(function, op, convention) if op else function, convention, place, library, name)


class Registration:
    """A kernel for the operator of a name, as long as its library lives: whether and whenever there is that operator.

    A function may say of itself what its `inferred_schema` is, which must be that of the operator.
    """

    __slots__ = ("name", "key", "options", "op", "kernel")

    def __init__(self, name: str, key: DispatchKey, *options: Any) -> None:
        self.name, self.key, self.options = name, key, options  # those of `made`
        self.op: OpOverload | None = None
        self.kernel = made(None, *options)

    def enter(self) -> None:
        """RuntimeError, and nothing has happened, where the operator has another schema than the function."""
        with LOCK:  # else another thread may define the operator in between, and neither would attach the kernel
            op = OPERATORS.get(self.name)
            if op is not None:
                self.check(op.schema, op.place)
            REGISTRATIONS[self.name] = [*REGISTRATIONS.get(self.name, ()), self]
            if op is not None:
                self.attach(op)

    def attach(self, op: OpOverload) -> None:
        """Registers the kernel for an operator, unless it is registered for that one."""
        with LOCK:
            if self.op is not op:
                self.op, self.kernel = op, made(op, *self.options)
                op.register(self.key, self.kernel)

    def remove(self) -> None:
        """Takes the kernel out again, wherever it is."""
        with LOCK:
            REGISTRATIONS[self.name] = [known for known in REGISTRATIONS.get(self.name, ()) if known is not self]
            if not REGISTRATIONS[self.name]:
                del REGISTRATIONS[self.name]
            if self.op is not None:
                self.op.unregister(self.key, self.kernel)

    def check(self, schema: FunctionSchema, place: str) -> None:
        inferred = getattr(self.kernel.function, "inferred_schema", None)
        reason = inferred and difference(schema, inferred)
        if reason:
            raise RegistrationError(
                "Inferred operator schema for a C++ kernel function doesn't match the expected function schema.\n"
                f"  operator: {self.name}\n  expected schema: {schema}\n    registered at {place}\n"
                f"  inferred schema: {inferred}\n    {self.kernel.label}\n  reason: {reason}"
            )


REGISTRATIONS: dict[str, list[Registration]] = {}  # by the operator's name, in the order in which they came


def difference(expected: FunctionSchema, inferred: FunctionSchema) -> str:
    """Says in what two schemas differ, but for names and defaults; empty where they do not."""
    for what, ours, theirs in (
        ("argument", expected.arguments, inferred.arguments),
        ("return", expected.returns, inferred.returns),
    ):
        if len(ours) != len(theirs):
            return f"The number of {what}s is different. {len(ours)} vs {len(theirs)}."
        for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if one.type != other.type:
                return f"Type mismatch in {what} {index + 1}: {one.type} vs {other.type}."
    return ""


def registrations(name: str) -> Registrations | None:
    """The kernels for the operator of that name, which may not exist; None where nobody has heard of it."""
    if name in OPERATORS or (load_late(name) and name in OPERATORS):
        return OPERATORS[name].registrations
    if name not in REGISTRATIONS:
        return None
    waiting: dict[DispatchKey, list[Kernel]] = {}
    for registration in REGISTRATIONS[name]:
        waiting.setdefault(registration.key, []).append(registration.kernel)
    return waiting


def dangling() -> list[str]:
    """The names of operators that do not exist, for which there are kernels."""
    return [name for name in REGISTRATIONS if name not in OPERATORS]


def _meet(event: str, op: OpOverload) -> None:
    """Gives an operator the kernels that came before it."""
    for registration in REGISTRATIONS.get(op.qualified_name, ()):
        if event == "defined":
            registration.attach(op)
        elif registration.op is op:
            registration.op = None


LISTENERS.append(_meet)


class Library:
    """A handle on registrations: `Library("mylib", "FRAGMENT")`.

    `kind` is "DEF" (owns the namespace; one per namespace), "FRAGMENT" (adds operators to any namespace) or "IMPL"
    (kernels for operators, now or later; with the namespace "_", fallbacks for all operators). With `dispatch_key`,
    `impl` uses that key where it is given none.

    >>> import redispatch as rd
    >>> from redispatch.library import Library
    >>> lib = Library("doc", "FRAGMENT")
    >>> _ = lib.define("half(Tensor x) -> Tensor")
    >>> _ = lib.impl("half", lambda x: x / 2, "CPU")
    >>> rd.ops.doc.half(rd.ones(2))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: DispatchKey | str = "", *, _place: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in RESERVED and kind in ("DEF", "FRAGMENT"):
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        place = _place or caller()
        block = "TORCH_LIBRARY" if kind == "DEF" else f"TORCH_LIBRARY_{kind}"
        self._where = f"(Error occurred while processing {block} block at {place})"
        if dispatch_key and kind != "IMPL":
            raise RegistrationError(f"Library({ns!r}, {kind!r}): a dispatch key is for kind 'IMPL'.  {self._where}")
        self.ns, self.kind, self.dispatch_key = ns, kind, key_named(dispatch_key).name if dispatch_key else ""
        self._undo: list[Undo] = []
        self._op_impls: set[str] = set()
        self._finalizer = weakref.finalize(self, _undo_all, self._undo, self._op_impls, IMPLS)
        self._finalizer.atexit = False
        self._place = _place  # of all that is registered through it; where it is empty, that is asked each time
        once = [f"library {ns}"] if kind == "DEF" else []
        body(*once).append(partial(_undo_all, self._undo, self._op_impls, IMPLS))
        if kind == "DEF":
            self._own_namespace(place)

    def _own_namespace(self, place: str) -> None:
        if self.ns in _DEFINING:
            raise RegistrationError(
                f"Only a single TORCH_LIBRARY can be used to register the namespace {self.ns}; please put all of your "
                "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                "explicitly indicate this.  Previous registration of TORCH_LIBRARY was registered at "
                f"{_DEFINING[self.ns]}; latest registration was registered at {place}"
            )
        self._undo.append(partial(_disown, self.ns, place))  # without `self`, which it would keep alive
        _DEFINING[self.ns] = place

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Defines an operator by its schema, without the namespace; returns its name, without that of the overload."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        return self._define(schema, alias_analysis, self._place or caller(), tags).partition(".")[0]

    def _define(self, schema: str, alias_analysis: str, place: str, tags: Any = ()) -> str:
        """`define` for a definition that was written at `place`."""
        parsed = parse_schema(schema, allow_typevars=False)
        namespace, qualified, name = parsed.name.rpartition("::")
        if self.kind == "IMPL":
            given = f"{parsed.name}.{parsed.overload_name}".removesuffix(".")
            raise RegistrationError(
                f'def("{given}"): Cannot define an operator inside of a TORCH_LIBRARY_IMPL block.  All def()s '
                f"should be placed in the (unique) TORCH_LIBRARY block for their namespace.  {self._where}"
            )
        if qualified and namespace != self.ns:
            raise RegistrationError(self._elsewhere(namespace, "schema string", "(unique) TORCH_LIBRARY"))
        tags = tags if isinstance(tags, list | tuple) else (tags,)
        op = operator_of(replace(parsed, name=f"{self.ns}::{name}"), tags, place)
        body(f"operator {op.qualified_name}").append(partial(remove_operator, op))
        self._enter(partial(remove_operator, op), partial(add_operator, op))
        if alias_analysis:
            ALIAS_ANALYSIS[op] = alias_analysis
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
        former answers again. One for an operator that does not exist waits for it. Errors: RegistrationError where this
        key has a kernel registered from Python and `allow_override` is False; a meta kernel for a
        CompositeImplicitAutograd operator, or for one that nobody has heard of (`register_fake` waits).
        """
        self._impl(op_name, fn, dispatch_key, self._place or caller(), with_keyset, allow_override, waits=False)

    def _impl(
        self,
        op_name: str | OpOverload,
        fn: Callable[..., Any],
        dispatch_key: DispatchKey | str,
        place: str,
        with_keyset: bool = False,
        allow_override: bool = True,
        label: str = "",
        waits: bool = True,
    ) -> None:
        """`impl` for a registration that was written at `place`; `waits` says that one at Meta may come first."""
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if not isinstance(op_name, str | OpOverload):
            raise RuntimeError(
                "impl should be passed either a name or an OpOverload object as the first argument, "
                f"got {type(op_name)}"
            )
        given = op_name if isinstance(op_name, str) else op_name.qualified_name
        namespace, qualified, _ = given.partition("::")
        if qualified and namespace != self.ns:
            reason = self._elsewhere(namespace, "operator name", self._where.split()[4])
            raise RegistrationError(f'impl("{given}", ...): {reason}')
        if self.ns == "_":
            raise RegistrationError(f'impl("{given}", ...): the namespace _ has no operators; it is for fallbacks')
        name = given if qualified else f"{self.ns}::{given}"
        if name.endswith(".default"):
            raise RegistrationError("default is not a legal overload name for aten operators")
        key = key_named(dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")
        known = registrations(name)
        if known is None and key is DispatchKey.Meta and not waits:
            raise RegistrationError(f"operator {name} does not exist")
        known = known or {}
        if key is DispatchKey.Meta and known.get(DispatchKey.CompositeImplicitAutograd):
            raise RegistrationError(
                f"We should not register a meta kernel directly to the operator '{given}', because it has a "
                "CompositeImplicitAutograd kernel in core. Instead we should let the operator decompose, and ensure "
                "that we have meta kernels for the base ops that it decomposes into."
            )
        former = next(reversed(known.get(key, ())), None)
        if former is not None and former.library and not allow_override:
            raise RegistrationError(
                f"This is not allowed since there's already a kernel registered from python overriding "
                f"{given.split('::')[-1]}'s behavior for {key.name} dispatch key and {self.ns} namespace. The "
                f"former one is at {former.place}, the new one at {place}; pass allow_override=True to override it"
            )
        if self.dispatch_key and key is not key_named(self.dispatch_key):
            raise RegistrationError(
                f'impl("{given}", ...): Explicitly provided dispatch key ({key.name}) is inconsistent with the '
                f"dispatch key of the enclosing TORCH_LIBRARY_IMPL block ({key_named(self.dispatch_key).name}).  "
                "Please declare a separate TORCH_LIBRARY_IMPL block for this dispatch key and move your impl() there.  "
                f"{self._where}"
            )
        if former is not None and not _same_definition(former, fn):
            warn_of_overriding(name, key, former, place)
        convention = "keyset" if with_keyset else "python"
        registration = Registration(name, key, fn, convention, place, self.ns, label)
        self._enter(registration.remove, registration.enter)
        entry = f"{self.ns}/{name.split('::')[-1]}/{key.name}"
        self._op_impls.add(entry)
        IMPLS.add(entry)

    def _elsewhere(self, namespace: str, where: str, block: str) -> str:
        """Says that a name is of another namespace than the library."""
        own = self._where.split()[4]
        return (
            f"Explicitly provided namespace ({namespace}) in {where} does not match namespace of enclosing {own} block "
            f"({self.ns}).  Move this definition to the {block} block corresponding to this namespace (and consider "
            f"deleting the namespace from your schema string.)  {self._where}"
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
        place = self._place or caller()
        if fn is fallthrough_kernel:
            kernel = fallthrough(place, self.ns)
        else:
            kernel = Kernel(fn, box_fallback(fn, with_keyset), "fallback", place, self.ns)
        body(f"fallback at {key.name}").append(partial(remove_fallback, key, kernel))
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
        _undo_all(self._undo, self._op_impls, IMPLS)

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *error: object) -> None:
        self._destroy()

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"


def _disown(ns: str, place: str) -> None:
    if _DEFINING.get(ns) is place:  # and not claimed anew in the meantime
        del _DEFINING[ns]


def _undo_all(undo: list[Undo], entries: set[str], among: set[str]) -> None:
    while undo:
        undo[-1]()  # each may be called twice: where it is interrupted, it is not yet taken off
        undo.pop()
    among -= entries


def warn_of_overriding(name: str, key: DispatchKey, former: Kernel, place: str) -> None:
    """Warns, once per process unless `set_warn_always` says otherwise, of a kernel that takes the place of another."""
    if WARNED.of_overriding and not WARNED.always:
        return
    WARNED.of_overriding = True
    op = OPERATORS.get(name)
    operator = f"{op.schema}\n    registered at {op.place}" if op else name
    warnings.warn(
        "Warning only once for all operators,  other operators may also be overridden.\n"
        "  Overriding a previously registered kernel for the same operator and the same dispatch key\n"
        f"  operator: {operator}\n  dispatch key: {key.name}\n"
        f"  previous kernel: registered at {former.place}\n       new kernel: registered at {place}",
        UserWarning,
        stacklevel=4,
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
    """Every operator that is defined now, or would be if a program looked for it."""
    define_late()
    return list(OPERATORS.values())
