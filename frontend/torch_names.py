"""Where each public name of PyTorch is: here, forwarded from another place, or absent for a reason.

    python -m redispatch.torch_names torch.lobpcg     # says where a name is
    python -m redispatch.torch_names                  # writes torch_names.txt beside this file; needs PyTorch itself

The names are facts of PyTorch 2.13, kept in torch_names.txt: each module's `__all__`, or, where it has none, what it
defines under a name without an underscore; and the functions and methods of `torch.overrides`. What becomes of a name
is read from the library: from its modules, from the tables of names that forward (_names.py, _moved.py) and from the
table of what is absent (_absent.py). `redispatch.reference` makes a page of it. Read next: _absent.py.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import NamedTuple

import redispatch
from redispatch import _absent, _names

FILE = Path(__file__).with_suffix(".txt")


# --- PyTorch's names, of PyTorch --------------------------------------------------------------------------------------


def collect() -> dict[str, list[str]]:
    """Returns the public names of the installed PyTorch: module -> names. A module that cannot be imported has none."""
    import torch  # only to make the list

    found = {"": public(torch)}
    for name in modules_in("torch", torch.__path__):
        try:
            found[name.removeprefix("torch.")] = public(import_module(name))
        except Exception:  # whatever an optional package's absence makes of it
            found[name.removeprefix("torch.")] = []
    for owner, functions in torch.overrides.get_overridable_functions().items():
        if isinstance(owner, ModuleType):
            module, known = owner.__name__.removeprefix("torch").removeprefix("."), set(map(id, functions))
            added = (name for name, value in vars(owner).items() if id(value) in known)
            found[module] = sorted({*found.get(module, []), *added})
    found["Tensor"] = sorted(name for name in dir(torch.Tensor) if not name.startswith("_"))
    return found


def modules_in(package: str, path: Iterable[str]) -> Iterator[str]:
    """Yields the names of the public modules below a package."""
    for info in iter_modules(path, f"{package}."):
        if not info.name.rpartition(".")[2].startswith("_"):
            yield info.name
            if info.ispkg:
                spec = info.module_finder.find_spec(info.name, None)
                yield from modules_in(info.name, (spec and spec.submodule_search_locations) or ())


def public(module: ModuleType) -> list[str]:
    """Returns the names that a module of PyTorch is documented to have."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and str(getattr(value, "__module__", "")).partition("._")[0] == module.__name__
        ]
    return sorted(set(names))


def write_names(path: Path = FILE) -> None:
    """Writes the list, a paragraph for each module."""
    lines = [
        textwrap.fill(" ".join([f"{module or '.'}:", *names]), 120, subsequent_indent="    ", break_on_hyphens=False)
        for module, names in sorted(collect().items())
    ]
    path.write_text("\n".join(lines) + "\n")


def names() -> dict[str, list[str]]:
    """Returns PyTorch's public names: module -> names. The module "" is `torch` itself, `Tensor` its class."""
    found: dict[str, list[str]] = {}
    for word in FILE.read_text().split():
        if word.endswith(":"):
            listed = found[word[:-1].removesuffix(".")] = []
        else:
            listed.append(word)
    return found


# --- what becomes of them ---------------------------------------------------------------------------------------------


class Where(NamedTuple):
    """The state of a name: `here`, `forwards` to a place, or `absent` for a reason; `unknown` breaks a test."""

    state: str
    about: str = ""


def where(module: str, name: str) -> Where:
    """Returns what becomes of a public name of PyTorch. The module "" is the package; `Tensor` its class."""
    if module == "Tensor":
        reason = _absent.why(module, name)
        return Where("absent", reason) if reason else Where("here" if hasattr(redispatch.Tensor, name) else "unknown")
    found = where_is(module)
    if found.state in ("absent", "unknown"):
        return found
    if reason := _absent.why(module, name):
        return Where("absent", reason)
    owner = import_module(path(module))
    if not hasattr(owner, name):
        return where_is(f"{module}.{name}".removeprefix("."))  # a module that its package names in `__all__`
    place = found.about or _names.TAKEN.get(owner.__name__, {}).get(name, "")
    return Where("forwards", absolute(place, owner)) if place else Where("here")


@cache
def where_is(module: str) -> Where:
    """Returns what becomes of a public module of PyTorch."""
    if reason := _absent.why_module(module):
        return Where("absent", reason)
    try:
        owner = import_module(path(module))
    except ImportError:
        return Where("unknown")
    return Where("here") if owner.__name__ == path(module) else Where("forwards", owner.__name__)


def path(module: str) -> str:
    """Returns the path of a module of PyTorch in this library."""
    return f"{redispatch.__name__}.{module}".removesuffix(".")


def absolute(place: str, owner: ModuleType) -> str:
    """Returns the place of a row as a path: `.graph`, in a module of `fx`, is `fx.graph`."""
    return resolve_name(place, owner.__package__ or "")


# --- the page ---------------------------------------------------------------------------------------------------------

STATES = ("here", "forwards", "absent")
VERBS = {"here": "here", "forwards": "forward", "absent": "absent"}  # of several names


class Listing(NamedTuple):
    """A module, and its names by state: state -> place or reason -> names."""

    module: str
    itself: Where
    names: dict[str, dict[str, list[str]]]

    def count(self, state: str) -> int:
        """Returns how many names are in a state."""
        return sum(map(len, self.names[state].values()))


def listings() -> list[Listing]:
    """Returns what becomes of all, module by module, those that are `torch` itself and its class `Tensor` first."""
    made = []
    for module, listed in sorted(names().items(), key=lambda item: (item[0] not in ("", "Tensor"), item[0])):
        found: dict[str, dict[str, list[str]]] = {state: {} for state in (*STATES, "unknown")}
        for name in listed:
            state, about = where(module, name)
            found[state].setdefault(about, []).append(name)
        made.append(Listing(module, Where("here") if module == "Tensor" else where_is(module), found))
    return made


def page() -> str:
    """Returns the page "What of PyTorch is here": a table with the parts, then each part, folded."""
    parts: dict[str, list[Listing]] = {}
    for listing in listings():
        parts.setdefault(listing.module.partition(".")[0], []).append(listing)
    every = [one for part in parts.values() for one in part]
    here, forwards, absent = (sum(one.count(state) for one in every) for state in STATES)
    return "\n".join(
        [
            "# What of PyTorch is here",
            "",
            f"PyTorch 2.13 has {here + forwards + absent:,} public names in {len(every)} modules. Of these {here:,}",
            f"are here, {forwards:,} forward to another module of this library that has them, and {absent:,} are",
            "absent, each for a reason, which the error says. Where programs ask `torch.distributed.is_available()`, a",
            "part that is absent as a whole is a module all the same, and a function may be there that raises when it",
            "is called. This page is made from the library when the documentation is built.",
            "",
            "| part | here | forwards | absent | absent as a whole |",
            "|---|---:|---:|---:|---|",
            *(row(part, listed) for part, listed in parts.items()),
            "",
            *(line for part, listed in parts.items() for line in ["", f"## {shown(part)}", "", *sections(listed)]),
            "",
        ]
    )


def row(part: str, listed: list[Listing]) -> str:
    """Returns the row of a part in the table."""
    counts = (sum(one.count(state) for one in listed) for state in STATES)
    link = shown(part).lower().replace(".", "")
    reason = listed[0].itself.about if listed[0].itself.state == "absent" else ""
    return f"| [{shown(part)}](#{link}) | {' | '.join(f'{count:,}' if count else '' for count in counts)} | {reason} |"


def sections(listed: list[Listing]) -> Iterator[str]:
    """Yields a folded list for each module of a part; what is absent as a whole is one line."""
    whole: dict[str, list[Listing]] = {}
    for one in listed:
        if one.itself.state == "absent":
            whole.setdefault(one.itself.about, []).append(one)
        elif any(one.names.values()):
            counts = ", ".join(f"{one.count(state):,} {VERBS[state]}" for state in STATES if one.count(state))
            yield f"<details class='part'><summary><code>{shown(one.module)}</code> <small>{counts}</small></summary>"
            for state in STATES:
                for about, listed_names in one.names[state].items():
                    to = f" to <code>{about}</code>" if state == "forwards" else f": {about}" if about else ""
                    yield f"<p>{state}{to}</p>\n{columns(listed_names)}"
            yield "</details>"
    for reason, absent in whole.items():
        count = sum(one.count("absent") for one in absent)
        modules = "1 module" if len(absent) == 1 else f"{len(absent)} modules"
        yield f"<details class='part'><summary>absent: {reason} <small>{modules}, {count:,} names</small></summary>"
        yield f"{columns(shown(one.module) for one in absent)}</details>"


def columns(listed: Iterable[str]) -> str:
    """Returns names as HTML in columns."""
    return f"<div class='names'>{''.join(f'<code>{name}</code>' for name in listed)}</div>"


def shown(module: str) -> str:
    """Returns PyTorch's path of a module."""
    return f"torch.{module}".removesuffix(".")


def main(asked: list[str]) -> None:
    """Prints where names are; without any, writes PyTorch's."""
    if not asked:
        write_names()
    for full in asked:
        module, _, name = full.removeprefix("torch.").rpartition(".")
        state, about = where(module, name)
        print(f"{full}: {state}{about and f', {about}'}")


if __name__ == "__main__":
    main(sys.argv[1:])
