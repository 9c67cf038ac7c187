"""save and load: tensors, and plain containers of them, in PyTorch's own file format.

    rd.save(model.state_dict(), "model.pt")
    model.load_state_dict(rd.load("model.pt"))

A file is a zip archive of a pickle, which says how everything hangs together, and of the bytes of each storage
(writer.py). A pickle is a small program, and Python's own reader runs whatever the file asks for. The reader here
knows a list of names (names.py) and refuses all others, so that loading a file never runs code that it brought along.

Read next: names.py, reader.py, writer.py.
"""

from redispatch import _moved

from .names import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from .reader import MAP_LOCATION, get_unsafe_globals_in_checkpoint, load
from .writer import DEFAULT_PROTOCOL, save

__all__ = [
    "DEFAULT_PROTOCOL",
    "MAP_LOCATION",
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

_moved.join(__name__)
