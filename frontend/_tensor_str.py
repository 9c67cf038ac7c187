"""`redispatch._tensor_str`: PyTorch's path of how tensors are printed."""

from typing import Any

from redispatch.dispatch.tensor import Tensor, get_printoptions, printoptions, set_printoptions

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
