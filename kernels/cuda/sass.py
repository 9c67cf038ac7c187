"""Reads machine code: its registers, memory of a lane's own, calls. No GPU is needed for that.

A cubin is an ELF file. Its section `.nv.info` holds, for each function, how many registers a lane takes and how many
bytes its stack frame has, to which registers are spilled; the table of symbols names functions that are called, and
what was left open.

Source: ELF-64; the attributes' numbers are those that `cuobjdump -elf` shows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

REGISTERS, FRAME, STACK = 0x2F, 0x11, 0x12  # attributes, each with the number of a symbol and a value
BY_SIZE = 4  # the format of an attribute whose value has so many bytes as stand there
FUNCTION = 2  # the type of a symbol
RESERVED = ".nv.reserved"  # names of what every card has
HEADER, SECTION, SYMBOL = "<Q10xHHH", "<IIQQQQIIQQ", "<IBBHQQ"


class MachineCode(NamedTuple):
    """Machine code of a kernel. registers: of a lane. frame, stack: bytes of a lane's own memory, its own and with what
    it     calls. shared: bytes of a block. called: functions beside the kernel. unresolved: names that nobody has."""

    registers: int
    frame: int
    stack: int
    shared: int
    called: tuple[str, ...]
    unresolved: tuple[str, ...]


class Section(NamedTuple):
    name: str
    content: bytes
    size: int


def machine_code(cubin: bytes, kernel: str) -> MachineCode:
    """Reads what a cubin says of a kernel. ValueError for what is no cubin, KeyError for a kernel that is not there."""
    if cubin[:4] != b"\x7fELF":
        raise ValueError("no cubin: an ELF file was expected")
    sections = {one.name: one for one in sections_of(cubin)}
    symbols = list(symbols_of(sections[".symtab"].content, sections[".strtab"].content))
    number = next((k for k, (name, *_) in enumerate(symbols) if name == kernel), None)
    if number is None:
        raise KeyError(kernel)
    known = {key: value for key, symbol, value in attributes(sections[".nv.info"].content) if symbol == number}
    shared = sections.get(f".nv.shared.{kernel}")
    return MachineCode(
        known[REGISTERS],
        known.get(FRAME, 0),
        known.get(STACK, 0),
        0 if shared is None else shared.size,
        tuple(name for name, kind, where in symbols if kind == FUNCTION and where and name != kernel),
        tuple(name for name, _, where in symbols if name and not where and not name.startswith(RESERVED)),
    )


def sections_of(elf: bytes) -> Iterator[Section]:
    at, size, count, names_at = struct.unpack_from(HEADER, elf, 40)
    headers = [struct.unpack_from(SECTION, elf, at + k * size) for k in range(count)]
    names = headers[names_at]
    for name, kind, _, _, offset, nbytes, *_ in headers:
        content = b"" if kind == 8 else elf[offset : offset + nbytes]  # 8: memory without content in the file
        yield Section(text_at(elf, names[4] + name), content, nbytes)


def symbols_of(table: bytes, names: bytes) -> Iterator[tuple[str, int, int]]:
    """(name, type, number of the section, 0 where it is nowhere) of each symbol."""
    for name, info, _, where, _, _ in struct.iter_unpack(SYMBOL, table):
        yield text_at(names, name), info & 15, where


def attributes(content: bytes) -> Iterator[tuple[int, int, int]]:
    """(attribute, symbol, value) for those that have both."""
    at = 0
    while at < len(content):
        form, key, value = struct.unpack_from("<BBH", content, at)
        at += 4
        if form == BY_SIZE:
            if value == 8:
                yield key, *struct.unpack_from("<II", content, at)
            at += value


def text_at(content: bytes, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()
