"""`_C._dispatch_library`: what `Library` keeps as its `m` in PyTorch, by which C++ registers, and tests of C++.

Its kernels ending in `t_t` take a tensor and return it, and have the schema of such a function in C++.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from redispatch.dispatch import DispatchKey, Library, fallthrough_kernel, key_named, operator_named, parse_schema
from redispatch.dispatch.layers.ad_inplace_or_view import register_alias_tracking


def t_t(x: Any) -> Any:
    """Returns its argument."""
    return x


def _dispatch_key_parse(name: DispatchKey | str) -> DispatchKey:
    """The key of that name; RuntimeError where there is none."""
    try:
        return key_named(name)
    except ValueError as problem:
        raise RuntimeError(*problem.args) from None


INFERRED = replace(parse_schema("t_t(Tensor _0) -> Tensor _0"), name="")  # what C++ would infer
t_t.inferred_schema = INFERRED  # type: ignore[attr-defined]  # a mark of ours on Python's object

KINDS = ("CONSERVATIVE", "FROM_SCHEMA", "PURE_FUNCTION")


class _DispatchModule:
    """Definitions and kernels that stay until it is dropped, in any order relative to other modules."""

    def __init__(self, kind: str, name: str, dispatch: str, file: str = "/dev/null", linenum: int = 0) -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise RuntimeError(f"could not parse {kind}")
        self._place = f"{file}:{linenum}"
        self._library = Library(name, kind, _dispatch_key_parse(dispatch) if dispatch else "", _place=self._place)

    def def_(self, schema: str, alias: str = "") -> _DispatchModule:
        """Defines an operator; `alias` says what its calls may alias and write."""
        if alias and alias not in KINDS:
            raise RuntimeError(f"could not parse {alias}")
        self._library._define(schema, alias, self._place)
        return self

    def def_legacy(self, schema: str) -> _DispatchModule:
        self._library._define(schema, "CONSERVATIVE (default)", self._place)
        return self

    def def_name_t_t(self, name: str, dispatch: str = "", debug: str = "default_def_name_t_t") -> _DispatchModule:
        """Defines an operator of the schema of its kernel."""
        return self.def_schema_t_t(f"{name}{INFERRED}", dispatch, "CONSERVATIVE", debug)

    def def_schema_t_t(
        self, name: str, dispatch: str = "", alias: str = "", debug: str = "default_def_schema_t_t"
    ) -> _DispatchModule:
        """Defines an operator by its schema, and its kernel."""
        key = _dispatch_key_parse(dispatch) if dispatch else ""
        return self.def_(name, alias).impl_t_t(name.split("(")[0], key, debug)

    def impl_t_t(self, name: str, dispatch: DispatchKey | str = "", debug: str = "impl_t_t") -> _DispatchModule:
        self._library._impl(name, t_t, _dispatch_key_parse(dispatch) if dispatch else "", self._place, label=debug)
        return self

    def define(self, schema: str, alias_analysis: str = "", tags: Any = ()) -> str:
        """Defines an operator; returns its name."""
        return self._library._define(schema, alias_analysis, self._place, tags)

    def impl(self, name: str, dispatch: DispatchKey | str, func: Any, with_keyset: bool = False) -> None:
        """Registers a kernel written in Python."""
        self._library._impl(name, func, _dispatch_key_parse(dispatch), self._place, with_keyset)

    def fallback(self, dispatch: DispatchKey | str, func: Any, with_keyset: bool = False) -> None:
        """Registers what answers at a key for every operator that has nothing there."""
        library = self._library
        if library.kind != "IMPL":
            block = library._where.removeprefix("(Error occurred while processing ").partition(" at ")[0]
            raise RuntimeError(
                f"fallback(...): Cannot define an operator inside of a {block}.  Did you mean to call this function "
                f"inside a TORCH_LIBRARY_IMPL block?  {library._where}"
            )
        key = _dispatch_key_parse(dispatch or library.dispatch_key)
        if library.ns != "_":
            raise RuntimeError(
                "fallback(...): Fallback functions which apply to only a single namespace (you specified "
                f"{library.ns}) are not supported.  If you intended to apply this fallback function globally, please "
                f"define a separate block:\n\n    TORCH_LIBRARY_IMPL(_, {key.name}, m) {{ m.fallback(...); }}\n\n"
                f"{library._where}"
            )
        library.fallback(func, key, with_keyset=with_keyset)

    def fallback_fallthrough(self, dispatch: str = "") -> _DispatchModule:
        """Has a key skipped for every operator that has nothing there."""
        self.fallback(dispatch, fallthrough_kernel)
        return self

    def register_ad_inplace_or_view_fallback(self, name: str) -> None:
        """Has an operator's writes counted, and its views tied to their bases, as its schema tells them."""
        self._library.undo_with(register_alias_tracking(operator_named(f"{self._library.ns}::{name}")))

    def reset(self) -> None:
        """Removes everything that was registered through it."""
        self._library._destroy()
