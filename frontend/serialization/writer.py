"""The pickle of an object, under PyTorch's names; storages stay outside it and are numbered.

Python's pickler looks every name up before it writes it, and PyTorch's names need not exist in this process: so the
names of names.py are written by hand. For that the pickler has to be the one that is written in Python.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Size, Tensor, UntypedStorage, device, dtype, dtypes, layout, strided
from redispatch.dispatch.tensor.copies import values_in_slots
from redispatch.dispatch.tensor.layouts import qscheme
from redispatch.kernels.ops.from_data import from_numpy
from redispatch.kernels.ops.storages import TypedStorage
from redispatch.nn.parameter import Parameter

from . import names
from .names import NAME_OF, STORAGES

ALIGNMENT = 64
LOCAL_HEADER = 30  # bytes of a member's header before its name and its extra field
STORED = 0  # how zip archives call members that are not compressed
DEFAULT_PROTOCOL = 2  # of pickles
PADDING = 0x4246  # the tag of the extra field that moves a member to its place: "FB"


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes tensors, and containers and objects that hold them, to a path or an open file.

    Storages are written once, however many tensors view them, and wholly: save `x.clone()` where `x` is a small part
    of something large. Errors: RuntimeError where the folder does not exist, or one storage is seen as two dtypes;
    NotImplementedError for another pickler than Python's, and for the format that PyTorch wrote before 1.6.

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
    if pickle_module is not pickle:
        raise NotImplementedError(f"save(): the writer extends Python's pickler, and cannot use {pickle_module}")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save(): files are zip archives here, and not of the format before PyTorch 1.6")
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


class ArchiveWriter:
    """Writes members, each at its place."""

    def __init__(self, file: Any, folder: str) -> None:
        import zipfile  # here: it takes longer to import than most rooms of this library

        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)
        self._file, self._folder = self._zip.fp, folder

    def write(self, name: str, data: Any) -> None:
        """Adds a member; `data` is bytes or an array of bytes."""
        from zipfile import ZipInfo  # as above

        member = ZipInfo(f"{self._folder}/{name}")
        begin = self._file.tell() + LOCAL_HEADER + len(member.filename.encode()) + 4  # type: ignore[union-attr]  # not None here
        fill = -begin % ALIGNMENT
        member.extra = struct.pack("<HH", PADDING, fill) + bytes(fill)
        self._zip.writestr(member, data)

    def close(self) -> None:
        self._zip.close()


@contextmanager
def writing(file: Any, folder: str) -> Iterator[ArchiveWriter]:
    """A writer whose archive is complete at the end. After an error the archive has no directory: nothing reads it."""
    writer = ArchiveWriter(file, folder)
    writer.write(".format_version", b"1")
    writer.write(".storage_alignment", str(ALIGNMENT).encode())
    writer.write("byteorder", sys.byteorder.encode())
    yield writer
    writer.write("version", b"3\n")
    writer.close()


class ArchiveReader:
    """Reads members. RuntimeError where the file is no such archive or is cut short.

    mapped: whether arrays are windows onto the file rather than copies; writing to them does not change the file.
    """

    def __init__(self, file: Any, mapped: bool) -> None:
        import zipfile  # here: see ArchiveWriter

        self._damaged = (zipfile.BadZipFile, EOFError)
        try:
            self._zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as problem:
            raise RuntimeError(
                f"load: the file is no zip archive ({problem}). It is damaged, or was written by PyTorch before 1.6: "
                "such a file has to be loaded and saved again there"
            ) from None
        self._map = mapping(file) if mapped else None
        pickles = [name for name in self._zip.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise RuntimeError("load: the archive holds no data.pkl: it was not written by save")
        self._folder = pickles[0].removesuffix("data.pkl")
        self.swapped = self.has("byteorder") and self.read("byteorder").decode() != sys.byteorder

    def has(self, name: str) -> bool:
        return self._folder + name in self._zip.NameToInfo

    def names(self) -> list[str]:
        return [name.removeprefix(self._folder) for name in self._zip.namelist()]

    def read(self, name: str) -> bytes:
        """The bytes of a member; its checksum is compared."""
        if not self.has(name):
            raise RuntimeError(f"load: the archive has no member {name}")
        try:
            return self._zip.read(self._folder + name)
        except self._damaged as problem:
            raise RuntimeError(f"load: {name} is damaged: {problem}") from None

    def size(self, name: str) -> int:
        """Returns the number of bytes of a member."""
        if not self.has(name):
            raise RuntimeError(f"load: the archive has no member {name}")
        return self._zip.getinfo(self._folder + name).file_size

    def array(self, name: str) -> np.ndarray:
        """The bytes of a member as an array that may be written."""
        member = self._zip.getinfo(self._folder + name) if self.has(name) else None
        if self._map is None or member is None or member.compress_type != STORED:
            return np.frombuffer(bytearray(self.read(name)), np.uint8)
        header = self._map[member.header_offset : member.header_offset + LOCAL_HEADER]
        if len(header) < LOCAL_HEADER:
            raise RuntimeError(f"load: {name} is damaged: its header is cut short")
        start = member.header_offset + LOCAL_HEADER + sum(struct.unpack("<HH", header[26:30]))
        if start + member.file_size > len(self._map):
            raise RuntimeError(f"load: {name} is damaged: it reaches past the end of the file")
        found = np.frombuffer(self._map, np.uint8, member.file_size, start)
        return found if start % 16 == 0 else found.copy()  # loops want elements at multiples of their size


class PyTorchFileReader:
    """The members of an archive by name, as PyTorch's class of that name gives them.

    Errors: RuntimeError where the file is no archive, or has no such member.
    """

    def __init__(self, file: Any) -> None:
        self._close = ExitStack()
        self._archive = ArchiveReader(self._close.enter_context(opened(file)), False)

    def get_record(self, name: str) -> bytes:
        return self._archive.read(name)

    def has_record(self, name: str) -> bool:
        return self._archive.has(name)

    def get_all_records(self) -> list[str]:
        return self._archive.names()

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Tensor:
        """Returns the first elements of a member as a vector; of bytes for the class UntypedStorage as dtype."""
        kind = dtypes.uint8 if dtype is UntypedStorage else dtype
        found = from_numpy(self._archive.array(name)).view(kind)
        if numel > found.numel():
            raise RuntimeError(f"{name} has {found.numel()} elements of {kind}, and {numel} were asked for")
        return found[:numel]


def is_path(file: Any) -> bool:
    return isinstance(file, str) or hasattr(file, "__fspath__")


@contextmanager
def opened(file: Any) -> Iterator[Any]:
    """A file to read from, of a path or of a file that is open and can be moved in."""
    if is_path(file):
        with open(file, "rb") as handle:
            yield handle
        return
    if not hasattr(file, "seek"):
        raise AttributeError(
            f"'{type(file).__name__}' object has no attribute 'seek'. You can only load from a file that is seekable. "
            "Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    yield io.BytesIO(file.read())  # from here on: several archives may lie one behind the other


STORAGE_OF = {kind._dtype: kind for kind in STORAGES.values()}


PythonPickler: Any = pickle._Pickler  # what is written in Python can be extended, and has no public name


class Writer(PythonPickler):
    """Pickles to bytes and gathers the storages that it meets."""

    def __init__(self, protocol: int) -> None:
        self._buffer = io.BytesIO()
        super().__init__(self._buffer, protocol)
        self.storages: dict[int, tuple[str, UntypedStorage, Any]] = {}  # by identity: the number, itself, the dtype

    def pickled(self, value: Any) -> bytes:
        self.dump(value)
        return self._buffer.getvalue()

    def persistent_id(self, value: Any) -> Any:
        """A storage as its dtype, number, device and size; None for what belongs into the pickle."""
        if isinstance(value, TypedStorage):
            storage, element = value._untyped_storage, value.dtype
        elif isinstance(value, UntypedStorage):
            storage, element = value, None
        else:
            return None
        number, _, known = self.storages.setdefault(id(storage), (str(len(self.storages)), storage, element))
        if known is not element:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        kind = UntypedStorage if element is None else STORAGE_OF[element]
        size = storage.nbytes() // (1 if element is None else element.itemsize)
        return "storage", kind, number, str(storage.device), size

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Writes a class or function by name."""
        known = NAME_OF.get(obj)
        if known is None:
            super().save_global(obj, name)
            return
        module, _, short = known.rpartition(".")
        self.write(pickle.GLOBAL + f"{module}\n{short}\n".encode())
        self.memoize(obj)

    dispatch = {**PythonPickler.dispatch, FunctionType: save_global}

    def reducer_override(self, obj: Any) -> Any:
        """Returns pickle's form of the library's own objects."""
        if isinstance(obj, Tensor) and type(obj).__reduce_ex__ in (Tensor.__reduce_ex__, Parameter.__reduce_ex__):
            return tensor_reduced(obj)
        if isinstance(obj, Size):
            return Size, (tuple(obj),)
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, layout):
            return names.layout_named, (f"torch.{obj.name}",)
        if isinstance(obj, dtype | qscheme):
            return obj.name
        return NotImplemented


def tensor_reduced(x: Any) -> tuple[Any, ...]:
    """A function and its arguments, as PyTorch writes tensors: graphs and gradients are not kept."""
    state: Any = {name: value for name, value in x.__dict__.items() if name != "_quantizer"}
    slots, requires_grad = values_in_slots(x), x._requires_grad()
    if slots:
        state = state, slots
    if type(x) is Parameter:
        if state:
            return names.rebuild_parameter_with_state, (x.data, requires_grad, OrderedDict(), state)
        return names.rebuild_parameter, (x.data, requires_grad, OrderedDict())
    make, args = data_reduced(x, requires_grad)
    if type(x) is Tensor and not state:
        return make, args
    return names.rebuild_subclass, (make, type(x), args, state)


def data_reduced(x: Any, requires_grad: bool) -> tuple[Any, tuple[Any, ...]]:
    """Returns pickle's form of a tensor without class and attributes."""
    shape, stride = tuple(x._shape), tuple(x._stride)
    if x._storage.has_data:
        if x._dtype not in STORAGE_OF:
            whole: Any = (x._storage, x._offset, shape, stride, requires_grad, OrderedDict(), x._dtype)
            return names.rebuild_tensor_of, (*whole, names.lazy_bits_of(x))
        storage = TypedStorage(wrap_storage=x._storage, dtype=x._dtype, _internal=True)
        hooks: Any = OrderedDict()
        if x._quantizer is not None:
            how = (x._quantizer.scheme, *x._quantizer.arguments)
            return names.rebuild_quantized, (storage, x._offset, shape, stride, how, requires_grad, hooks)
        parts = (storage, x._offset, shape, stride, requires_grad, hooks)
        bits = names.lazy_bits_of(x)
        return names.rebuild_tensor, (*parts, bits) if bits else parts
    if type(x) is Tensor:
        return names.rebuild_meta_tensor, (x._dtype, shape, stride, requires_grad)
    face = (type(x), x._dtype, shape, stride, x._offset, strided, x._device, requires_grad)
    return names.rebuild_wrapper, face


def mapping(file: Any) -> Any:
    """Returns a file as memory, into which writes are this process's own."""
    from mmap import ACCESS_COPY, mmap  # here, because a browser has no such memory

    return mmap(file.fileno(), 0, access=ACCESS_COPY)
