"""The pickle's way back, by a reader that calls nothing but what names.py lists.

A pickle is a program for a small machine with a stack. Of its instructions those are left out that no saved file
needs; those that look up a name, call something, make an instance or set its attributes are restricted to the names
that are allowed. So the worst that a file can do is to be refused, or to hold other numbers than you thought.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from redispatch.dispatch import TorchDispatchModeKey, mode_in_slot
from redispatch.dispatch.tensor import KINDS, Tensor, UntypedStorage, as_device, device
from redispatch.kernels.ops.storages import TypedStorage
from redispatch.nn.parameter import Parameter

from .names import READ, allowed_by_users, shipped, with_state
from .writer import ArchiveReader, is_path, opened

# What the machine may do: numbers, strings and containers, and the six that are restricted below
PLAIN = """
    PROTO STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT
    BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 UNICODE SHORT_BINUNICODE BINUNICODE BINUNICODE8 FRAME MEMOIZE
    TUPLE EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS
    EMPTY_SET ADDITEMS FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT
""".split()
RESTRICTED = ("GLOBAL", "STACK_GLOBAL", "REDUCE", "NEWOBJ", "BUILD", "BINPERSID")
INSTRUCTIONS = {getattr(pickle, name)[0] for name in (*PLAIN, *RESTRICTED)}


# How `map_location` may say where storages go, for the signatures of programs.
MAP_LOCATION: TypeAlias = Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
) -> Any:
    """Loads a file that `save` wrote, here or in PyTorch. No code that the file brings along is run.

    map_location: where storages go: a device, a dict from saved places to others, or `f(storage, place)`.
    weights_only: always so. With False, too, classes that are not allowed are refused: they would run code.
    mmap: whether storages are windows onto the file, which must then be a path.
    Errors: pickle.UnpicklingError for a name that is not allowed (see add_safe_globals); RuntimeError for a damaged
    file, or a place that does not exist here; NotImplementedError for another unpickler than Python's.
    """
    if pickle_module not in (None, pickle):
        raise NotImplementedError(f"load(): the reader restricts Python's unpickler, and cannot use {pickle_module}")
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with opened(f) as file:
        try:
            return Reader(ArchiveReader(file, bool(mmap)), placing(map_location)).load()
        except pickle.UnpicklingError as refused:
            if weights_only is False:
                refused.add_note("weights_only=False does not change that: no file runs code here.")
            raise


def refuse(reader: Any) -> None:
    raise pickle.UnpicklingError("load: the pickle has an instruction that no saved file needs; it is not carried out")


PythonUnpickler: Any = pickle._Unpickler  # what is written in Python can be restricted, and has no public name


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """Returns the names in a file that `load` would refuse, in order. Nothing of the file is run."""
    with opened(f) as file:
        code = ArchiveReader(file, False).read("data.pkl")
    known, found, texts = {**READ, **allowed_by_users()}, [], [""]
    for instruction, value, _ in pickletools.genops(code):
        if isinstance(value, str):
            texts.append(value)
        if instruction.name in ("GLOBAL", "STACK_GLOBAL"):
            module, name = value.split(" ", 1) if value else texts[-2:]
            if f"{module}.{name}" not in known and shipped(module, name) is None:
                found.append(f"{module}.{name}")
    return [*dict.fromkeys(found)]


class Reader(PythonUnpickler):
    """Reads one object out of an archive."""

    dispatch = {code: PythonUnpickler.dispatch[code] if code in INSTRUCTIONS else refuse for code in range(256)}

    def __init__(
        self, archive: ArchiveReader, place: Callable[[UntypedStorage, str], UntypedStorage], folder: str = "data"
    ) -> None:
        super().__init__(io.BytesIO(archive.read(f"{folder}.pkl")))
        self.archive, self.place, self.folder = archive, place, folder
        self.users = allowed_by_users()
        self.storages: dict[str, UntypedStorage] = {}

    def load(self) -> Any:
        """The object. UnpicklingError for a pickle that is damaged or asks for what is not allowed."""
        try:
            return super().load()
        except (IndexError, EOFError, UnicodeDecodeError) as problem:
            raise pickle.UnpicklingError(f"load: the pickle is damaged: {problem}") from problem

    def find_class(self, module: str, name: str) -> Any:
        """Returns the object that a name stands for."""
        full = f"{module}.{name}"
        for known in (READ, self.users):
            if full in known:
                return known[full]
        kind = shipped(module, name)
        if kind is not None:
            self.users[full] = kind
            return kind
        raise pickle.UnpicklingError(
            f"load: the file asks for {full}, which is not allowed. A file that comes from somewhere else may mean you "
            f"harm; if you trust this one with {name}, import it and call "
            f"redispatch.serialization.add_safe_globals([{name}]), or load inside "
            f"redispatch.serialization.safe_globals([{name}])"
        )

    def is_allowed(self, value: Any) -> bool:
        return any(value is known for known in (*READ.values(), *self.users.values()))

    def load_reduce(self) -> None:
        """Calls a function or class of the list."""
        args, function = self.stack.pop(), self.stack[-1]
        if not self.is_allowed(function):
            raise pickle.UnpicklingError(f"load: the file calls {function!r}, which is not allowed")
        self.stack[-1] = function(*args)

    def load_newobj(self) -> None:
        """Makes an instance, without its __init__, of a class of the list."""
        args, kind = self.stack.pop(), self.stack.pop()
        if not (isinstance(kind, type) and self.is_allowed(kind)):
            raise pickle.UnpicklingError(f"load: the file makes an instance of {kind!r}, which is not allowed")
        self.append(kind.__new__(kind, *args))

    def load_build(self) -> None:
        """Sets the attributes of an instance: never those of a class, which others use, too."""
        state, made = self.stack.pop(), self.stack[-1]
        kind = type(made)
        if kind not in (OrderedDict, Counter, defaultdict, Tensor, Parameter) and kind not in self.users.values():
            raise pickle.UnpicklingError(f"load: the file sets attributes of a {kind.__name__}, which is not allowed")
        with_state(made, state)

    def persistent_load(self, saved: Any) -> Any:
        """A storage: read when it is first met, and shared by all that ask for it."""
        if not (isinstance(saved, tuple) and len(saved) == 5 and saved[0] == "storage"):
            raise pickle.UnpicklingError(f"load: the pickle refers to {saved!r}, which is no storage")
        _, kind, number, location, size = saved
        typed = isinstance(kind, type) and issubclass(kind, TypedStorage) and hasattr(kind, "_dtype")
        if not typed and kind is not UntypedStorage:
            raise pickle.UnpicklingError(f"load: the pickle refers to a storage of class {kind!r}")
        if number not in self.storages:
            self.storages[number] = self.place(self.read_storage(number, kind._dtype if typed else None), location)
        storage = self.storages[number]
        if storage.nbytes() != size * (kind._dtype.itemsize if typed else 1):
            raise RuntimeError(f"load: storage {number} has {storage.nbytes()} bytes, and not {size} elements")
        return TypedStorage(wrap_storage=storage, dtype=kind._dtype, _internal=True) if typed else storage

    def read_storage(self, number: str, element: Any) -> UntypedStorage:
        array = self.archive.array(f"{self.folder}/{number}")
        if self.archive.swapped and element is not None:
            array.view(element.array).byteswap(inplace=True)
        return UntypedStorage.of_array(array)

    dispatch |= {
        pickle.REDUCE[0]: load_reduce,
        pickle.NEWOBJ[0]: load_newobj,
        pickle.BUILD[0]: load_build,
    }


# --- where a storage goes ---------------------------------------------------------------------------------------------


def placing(map_location: Any) -> Callable[[UntypedStorage, str], UntypedStorage]:
    """Returns a function that puts a storage that was saved at some place where `map_location` wants it."""
    if map_location is None:
        return restored
    if isinstance(map_location, str | device):
        return lambda storage, location: restored(storage, str(as_device(map_location)))
    if isinstance(map_location, Mapping):
        return lambda storage, location: restored(storage, str(map_location.get(location, location)))

    def asked(storage: UntypedStorage, location: str) -> UntypedStorage:
        answer = map_location(storage, location)
        return restored(storage, location) if answer is None else answer

    return asked


def restored(storage: UntypedStorage, location: str) -> UntypedStorage:
    """The storage at that place. RuntimeError where there is none of that name, or no memory behind it."""
    if location == "cpu":
        return storage
    if location == "meta" or mode_in_slot(TorchDispatchModeKey.FAKE) is not None:  # no device is needed for a fake
        return UntypedStorage.without_data(storage.nbytes(), as_device(location))
    if location.partition(":")[0] in KINDS:
        moved = UntypedStorage(storage.nbytes(), as_device(location))
        moved.write(storage.read())
        return moved
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
            "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
            "storages to the CPU."
        )
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {location})"
    )
