"""The two functions. Read next: writer.py, reader.py."""

from __future__ import annotations

import os
import pickle
from typing import Any

from .reader import Reader, placing
from .writer import ArchiveReader, Writer, is_path, opened, writing


def save(obj: Any, f: Any, *, pickle_protocol: int = 2) -> None:
    """Writes tensors, and containers and objects that hold them, to a path or an open file.

    Storages are written once, however many tensors view them, and wholly: save `x.clone()` where `x` is a small part
    of something large. Errors: RuntimeError where the folder does not exist, or one storage is seen as two dtypes.

    >>> import redispatch as rd
    >>> import io
    >>> file = io.BytesIO()
    >>> rd.save({"weight": rd.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> rd.load(file)
    {'weight': tensor([1., 1.])}
    """
    if not is_path(f) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    folder = "archive"
    if is_path(f):
        parent, name = os.path.split(os.path.abspath(os.fspath(f)))
        if not os.path.isdir(parent):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
        folder = os.path.splitext(name)[0] or folder
    writer = Writer(pickle_protocol)
    data = writer.pickled(obj)
    with writing(f, folder) as archive:
        archive.write("data.pkl", data)
        for number, storage, _ in writer.storages.values():
            archive.write(f"data/{number}", storage.read().data)


def load(f: Any, map_location: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None) -> Any:
    """What `save` wrote, here or in PyTorch. No code that the file brings along is run.

    map_location: where storages go: a device, a dict from saved places to others, or `f(storage, place)`.
    weights_only: always so. With False, too, classes that are not allowed are refused: they would run code.
    mmap: whether storages are windows onto the file, which must then be a path.
    Errors: pickle.UnpicklingError for a name that is not allowed (see add_safe_globals); RuntimeError for a damaged
    file, or a place that does not exist here.
    """
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with opened(f) as file:
        try:
            return Reader(ArchiveReader(file, bool(mmap)), placing(map_location)).load()
        except pickle.UnpicklingError as refused:
            if weights_only is False:
                refused.add_note("weights_only=False does not change that: no file runs code here.")
            raise
