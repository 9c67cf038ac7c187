"""`redispatch._tensor_str`: PyTorch's path of how tensors are printed."""

from collections.abc import Sequence
from typing import Any

from redispatch.dispatch.tensor import Tensor, get_printoptions, printoptions, set_printoptions
from redispatch.dispatch.tensor.printing import append_facts, format_tensor

__all__ = ["PRINT_OPTS", "printoptions", "set_printoptions"]


class _Options:
    """The settings of `set_printoptions`, by attribute, as they are when asked for."""

    def __getattr__(self, name: str) -> Any:
        options = get_printoptions()
        if name not in options:
            raise AttributeError(f"there is no setting {name!r} of how tensors are printed: {', '.join(options)}")
        return options[name]


PRINT_OPTS = _Options()


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """Returns the text of a tensor, or with this text in the place of its numbers."""
    return Tensor.__repr__(self, tensor_contents=tensor_contents)


_str_intern = _str  # its former name


def _tensor_str(self: Tensor, indent: int) -> str:
    """Returns the numbers alone, in brackets; lines after the first one begin with `indent` spaces."""
    if self.numel() == 0 or self.is_meta:
        return "[]" if self.numel() == 0 else "..."
    plain = self.detach().resolve_conj().resolve_neg()
    plain = plain.float() if plain.is_floating_point() and plain.dtype.itemsize == 2 else plain
    return format_tensor(plain.numpy(force=True), "int64", prefix=" " * indent)[indent:-1]


def _add_suffixes(tensor_str: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """Returns the text, the facts behind it as far as the line reaches, and a closing parenthesis."""
    broken = f"{tensor_str},\n{' ' * indent}{suffixes[0]}" if force_newline and suffixes else tensor_str
    return append_facts(broken, suffixes[1:] if force_newline else suffixes, indent, PRINT_OPTS.linewidth)
