"""The exceptions of the dispatcher: each says what was passed, what was expected, and keeps the facts as fields.

Read next: dispatch/schema/parser.py, dispatch/core/registry.py and dispatch/protocols/mode_stack.py, which raise them.
"""

from __future__ import annotations

_WINDOW = 160  # how much of a schema an error message shows; longer texts are cut around the mistake


class SchemaError(RuntimeError):
    """A schema string that does not parse. `text` is the whole string, `position` the offset of the mistake in it."""

    def __init__(self, message: str, text: str, position: int) -> None:
        self.message = message
        self.text = text
        self.position = position
        super().__init__(f"{message}:\n{_excerpt(text, position)}")

    def __reduce__(self):  # else pickle would call SchemaError(the finished message) and fail
        return type(self), (self.message, self.text, self.position)


def _excerpt(text: str, position: int) -> str:
    """The part of `text` around `position`, and a second line with a caret below it."""
    start = max(0, position - _WINDOW // 2) if len(text) > _WINDOW else 0
    stop = min(len(text), start + _WINDOW)
    before, after = ("... " if start else ""), (" ..." if stop < len(text) else "")
    shown = "".join(c if c.isprintable() else " " for c in text[start:stop])
    return f"{before}{shown}{after}\n{' ' * (len(before) + position - start)}^"


class Warned:
    """The warnings that were given in this process; and whether to warn each time, as `set_warn_always` says."""

    of_cycles = of_overriding = always = False


WARNED = Warned()


class OutOfMemoryError(RuntimeError):
    """An accelerator has too little memory. Where the system has, the error is a plain RuntimeError, as in PyTorch."""


class AcceleratorError(RuntimeError):
    """An accelerator has failed, and what was computed on it cannot be trusted. `error_code`: what its driver says."""

    error_code: int = 0


class RegistrationError(RuntimeError):
    """A registration that cannot stand beside what is registered already: a taken name, a second fallback, ..."""


class ModeOrderError(RuntimeError):
    """A mode that ends while it is not the innermost active one."""


class MissingKernelError(NotImplementedError):
    """Nothing answers for an operator at a key. Fields: `op`, `key`, `keyset`."""

    def __init__(self, message: str, op: object = None, key: object = None, keyset: int = 0) -> None:
        self.op, self.key, self.keyset = op, key, keyset
        super().__init__(message)


class UnknownKeyError(RuntimeError, ValueError):
    """There is no dispatch key of that name. PyTorch raises RuntimeError; it is a wrong value, too."""
