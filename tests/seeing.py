"""The operators that a call comes to, as a dispatch mode sees them."""

from redispatch.utils._python_dispatch import TorchDispatchMode


class Seen(TorchDispatchMode):
    """Notes the short name of each operator that it is asked about, such as "add.Tensor" or "mm", and hands it on."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten.").removesuffix(".default"))
        return func(*args, **(kwargs or {}))


def seen(call):
    """The names of the operators that a call comes to, in one line."""
    with Seen() as mode:
        call()
    return " ".join(mode.names)
