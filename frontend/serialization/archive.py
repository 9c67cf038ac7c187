"""The container: a zip archive that holds everything uncompressed, under one folder.

    model/data.pkl            the pickle
    model/byteorder           "little"
    model/data/0, data/1 ...  the bytes of each storage, each beginning at a multiple of 64 in the file
    model/version             "3"

Because nothing is compressed, a storage can be read where it lies, out of a mapping of the file.
"""

from __future__ import annotations

import io
import mmap
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

ALIGNMENT = 64
LOCAL_HEADER = 30  # bytes of a member's header before its name and its extra field
STORED = 0  # how zip archives call members that are not compressed
PADDING = 0x4246  # the tag of the extra field that moves a member to its place: "FB"


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
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if mapped else None
        pickles = [name for name in self._zip.namelist() if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise RuntimeError("load: the archive holds no data.pkl: it was not written by save")
        self._folder = pickles[0].removesuffix("data.pkl")
        self.swapped = self._has("byteorder") and self.read("byteorder").decode() != sys.byteorder

    def _has(self, name: str) -> bool:
        return self._folder + name in self._zip.NameToInfo

    def read(self, name: str) -> bytes:
        """The bytes of a member; its checksum is compared."""
        if not self._has(name):
            raise RuntimeError(f"load: the archive has no member {name}")
        try:
            return self._zip.read(self._folder + name)
        except self._damaged as problem:
            raise RuntimeError(f"load: {name} is damaged: {problem}") from None

    def size(self, name: str) -> int:
        """How many bytes a member has."""
        if not self._has(name):
            raise RuntimeError(f"load: the archive has no member {name}")
        return self._zip.getinfo(self._folder + name).file_size

    def array(self, name: str) -> np.ndarray:
        """The bytes of a member as an array that may be written."""
        member = self._zip.getinfo(self._folder + name) if self._has(name) else None
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
