"""The second line of an error: PyTorch's words say what is wrong, a note below them what to do.

    RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)
    To fix: the columns of the first must be as many as the rows of the second (3 and 2 here); a @ b.T turns the second.

_remedies.py has a table of beginnings of messages. It is asked where an error leaves a public function, and again where
it ends a program or a cell; there the library's own frames are left out of the traceback, too, unless
`config.full_tracebacks` is set: an error that the library raises speaks for itself, and of one that Python raised in it
the two innermost frames stay. Nothing of this runs before there is an error.

Read first: dispatch/inspection/frames.py.
"""

from __future__ import annotations

import builtins
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cache
from types import FrameType, TracebackType
from typing import Any

from redispatch.dispatch.config import config
from redispatch.dispatch.inspection.frames import ADVICE, REMEDIED

from ._remedies import TABLE

LIBRARY = __name__.partition(".")[0]
KEPT = 2  # frames of the library, where it did not say itself what is wrong
LIKENESS = 0.7  # of a name to the one that was meant
HANDLERS = ("__torch_dispatch__", "__torch_function__")


@cache
def remedies() -> dict[str, str]:
    """Returns the table of _remedies.py: the beginning of a message -> what to do."""
    found: dict[str, str] = {}
    pattern = ""
    for line in TABLE.splitlines():
        if line.startswith("    "):
            found[pattern] = f"{found[pattern]} {line.strip()}".strip()
        elif line and not line.startswith("# "):
            pattern = line
            found[pattern] = ""
    return found


@cache
def any_beginning() -> re.Pattern[str]:
    """Matches what some row matches: most errors that programs catch are in none."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in remedies()), re.DOTALL)


def advise(error: BaseException) -> None:
    """Adds the note that says what to do, if the words of the error are known and nothing says it yet."""
    try:
        notes = getattr(error, "__notes__", ())
        if any(note.startswith(REMEDIED) for note in notes):
            return
        words = str(error)
        if "to fix  " in words or not any_beginning().match(words):
            return
        if "'NoneType'" in words and is_librarys([*frames_of(error)][-1][0]):
            return  # nothing that the program returned
        for pattern, remedy in remedies().items():
            found = re.match(pattern, words, re.DOTALL)
            if found:
                said = remedy.format(*found.groups())
                error.add_note(f"{REMEDIED}{said}{'' if said.endswith('?') else '.'}")
                return
    except Exception:  # an error is not to be lost for its note
        return


# Where an error ends a program or a cell ------------------------------------------------------------------------------


def advise_at_the_end(error: BaseException) -> None:
    """Adds the note that takes longer, or needs the traceback: names that are near, handlers that call themselves."""
    advise(error)
    if any(note.startswith(REMEDIED) for note in getattr(error, "__notes__", ())):
        return
    found = ""
    if isinstance(error, RecursionError):
        found = of_recursion(error)
    elif isinstance(error, AttributeError):
        found = near_name(error)
    if found:
        error.add_note(f"{REMEDIED}{found}")


def near_name(error: AttributeError) -> str:
    """Returns a question about a name like the one that is not there; "" where there is none, or Python asks it."""
    owner, name = getattr(error, "obj", None), getattr(error, "name", None)
    if owner is None or name is None or not is_of_library(type(owner), owner):
        return ""
    near = get_close_matches(name, [one for one in dir(owner) if not one.startswith("_")], 3, LIKENESS)
    return f"did you mean {' or '.join(near)}?" if near else ""


def is_of_library(kind: type, owner: Any) -> bool:
    """Whether an object, or a base of its class, is the library's."""
    names = [getattr(owner, "__name__", ""), *(base.__module__ for base in kind.__mro__)]
    return any(str(name).partition(".")[0] in (LIBRARY, "torch") for name in names)


def of_recursion(error: RecursionError) -> str:
    """Returns what to do about a handler that reached itself; "" for any other recursion."""
    frames = [frame for frame, _, _ in frames_of(error)]
    for name in HANDLERS:
        again = [frame for frame in frames if frame.f_code.co_name == name and not is_librarys(frame)]
        if len(again) < 3:
            continue
        own = again[0].f_locals.get(again[0].f_code.co_varnames[0])
        place = f"{again[0].f_code.co_filename}:{again[0].f_code.co_firstlineno}"
        who = own.__name__ if isinstance(own, type) else type(own).__name__
        if not isinstance(own, type):
            return (
                f"{who}.{name} ({place}) was asked about what it calls itself: a mode is off while its handler runs, "
                "so do not enter it there again."
            )
        if name == "__torch_function__":
            return (
                f"{who}.{name} ({place}) was asked about what it calls itself: end with "
                "`return super().__torch_function__(func, types, args, kwargs)`, or call func in `with "
                "torch._C.DisableTorchFunctionSubclass():`."
            )
        return (
            f"{who}.{name} ({place}) was asked about what it calls itself: its arguments are still {who}. Call func on "
            f"what is inside of them: pytree.tree_map_only({who}, lambda t: t.inner, (args, kwargs))."
        )
    return ""


def frames_of(error: BaseException) -> Iterator[tuple[FrameType, int, int]]:
    """The frames of a traceback, the outermost first: (frame, instruction, line)."""
    at = error.__traceback__
    while at is not None:
        yield at.tb_frame, at.tb_lasti, at.tb_lineno
        at = at.tb_next


def is_librarys(frame: FrameType) -> bool:
    return (frame.f_globals.get("__name__") or "").partition(".")[0] == LIBRARY


def without_own_frames(error: BaseException) -> TracebackType | None:
    """Returns a traceback without the library's frames; where nobody said what is wrong, the two innermost stay."""
    frames = list(frames_of(error))
    own = [i for i, (frame, _, _) in enumerate(frames) if is_librarys(frame)]
    kept: set[int] = set()
    if own and (len(own) == len(frames) or not speaks_for_itself(error, frames[-1])):
        kept = set(own[-KEPT:])
    made: TracebackType | None = None
    for i in range(len(frames) - 1, -1, -1):
        if i in kept or i not in set(own):
            made = TracebackType(made, *frames[i])
    return made


def speaks_for_itself(error: BaseException, innermost: tuple[FrameType, int, int]) -> bool:
    """Whether somebody wrote what is wrong: a `raise`, a remedy, or the system."""
    frame, _, line = innermost
    if isinstance(error, OSError | RecursionError) or not is_librarys(frame):
        return True
    if any(note.startswith(REMEDIED) for note in getattr(error, "__notes__", ())):
        return True
    return linecache.getline(frame.f_code.co_filename, line, frame.f_globals).lstrip().startswith("raise")


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that a traceback shows above it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def showing(error: BaseException, show: Callable[[], None]) -> None:
    """Calls `show`, which prints the error, with notes and a short traceback; afterwards it has its long one again."""
    former = [(one, one.__traceback__) for one in chain(error)]
    try:
        if not config.full_tracebacks:
            for one, _ in former:
                advise_at_the_end(one)
                one.__traceback__ = without_own_frames(one)
    except Exception:  # whatever is wrong with an error, it is to be seen
        pass
    try:
        show()
    finally:
        for one, long in former:
            one.__traceback__ = long


def at_the_end_of_a_cell(shell: Any, kind: type, error: BaseException, _: Any, tb_offset: Any = None) -> None:
    """IPython's handler of errors, for notebooks."""
    showing(error, lambda: shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset))


def shown(error: BaseException) -> str:
    """The text in which an error ends a program."""
    lines: list[str] = []
    showing(error, lambda: lines.extend(traceback.format_exception(error)))
    return "".join(lines)


def hook(former: Callable[..., Any]) -> Callable[..., Any]:
    def excepthook(kind: type, error: BaseException, _: Any) -> None:
        showing(error, lambda: former(kind, error, error.__traceback__))

    return excepthook


def install() -> None:
    """Has errors leave public functions with advice, and end programs and cells as `showing` shows them."""
    ADVICE.append(advise)
    sys.excepthook = hook(sys.excepthook)
    shell = getattr(builtins, "get_ipython", lambda: None)()
    if shell is not None and not shell.custom_exceptions:
        shell.set_custom_exc((Exception,), at_the_end_of_a_cell)
