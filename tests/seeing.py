"""Modes that note what they see: the operators that a call comes to, and the public functions that are called."""

from redispatch.overrides import TorchFunctionMode
from redispatch.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    """Notes each call of an operator that it is asked about, as (func, types, args, kwargs), and hands it on."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        """The short names of the operators, such as "add.Tensor" or "mm"."""
        return [str(func).removeprefix("aten.").removesuffix(".default") for func, *_ in self.calls]


class SeenFunctions(TorchFunctionMode):
    """Notes each public function that it is asked about, as (func, types, args, kwargs), and hands it on."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs))
        return func(*args, **(kwargs or {}))

    @property
    def names(self):
        return [func.__name__ for func, *_ in self.calls]


def seen(call):
    """The names of the operators that a call comes to, in one line."""
    with Seen() as mode:
        call()
    return " ".join(mode.names)
