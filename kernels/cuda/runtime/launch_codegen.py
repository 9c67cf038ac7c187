"""The launches of a plan, written out: with all that they are told but for addresses.

    def run(addresses, stream):
        block = allocate(1024, on)
        at = block.address
        start0((64, at, addresses[0], 17), stream)
        start1((64, addresses[2], at, addresses[1] + 16), stream)

A function of its own for each plan: to put such tuples together from a list of what goes where takes as long as all
else that a planned call does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from redispatch.kernels.cuda import TAPES

from .async_errors import late_errors
from .launch_recorder import Place, Tape, Told, keep

Run = Callable[[list[int], int], None]  # (addresses, stream)
ALIGNED = 512  # bytes, of pieces of memory


def function_of(tape: Tape, order: Sequence[int | None]) -> Run:
    """The launches of a tape as `run(addresses, stream)`, where `order` says which place each address is of.

    Memory that a kernel made for the while is allocated again, and random numbers are drawn anew.
    """
    errors, index, steps = late_errors(tape.allocator.driver), tape.device.index or 0, tape.steps()
    scope: dict[str, Any] = {"allocate": tape.allocator.allocate, "on": tape.device}
    names = {k: f"addresses[{i}]" for i, k in enumerate(order) if k is not None}
    lines: list[str] = []

    def named(hint: str, value: Any) -> str:
        name = f"{hint}{len(scope)}"
        scope[name] = value
        return name

    def text(told: Told) -> str:
        if told.place is not None:
            return f"{names[told.place]} + {told.number}" if told.number else names[told.place]
        return str(told.number) if type(told.number) is int else named("number", told.number)

    if tape.kept:
        scope |= {"tapes": TAPES, "keep": keep, "kept": tape.kept}
        lines.append("if tapes: keep(kept)")
    for generator, count, k in tape.drawn:
        names |= {k: f"seed{k}", k + 1: f"offset{k}"}
        lines.append(f"seed{k}, offset{k} = {named('take', generator.take)}({count})")
    pieces = sorted({one.place for _, told in steps for one in told if one.place is not None} - {*names})
    if tape.allocator.told:  # the driver is told who has which memory, and so sees where each piece ends
        for k in pieces:
            names[k] = f"at{k}"
            lines += [f"block{k} = allocate({tape.size_of(k)}, on)", f"at{k} = block{k}.address"]
    elif pieces:
        starts, whole = packed([tape.size_of(k) for k in pieces], [tape.places[k] for k in pieces])
        lines += [f"block = allocate({whole}, on)", "at = block.address"]
        names |= {k: f"at + {start}" if start else "at" for k, start in zip(pieces, starts, strict=True)}
    for start, told in steps:
        lines.append(f"{named('start', start)}(({''.join(text(one) + ', ' for one in told)}), stream)")
    words = errors.words.get(index)
    if any(one.place is None and one.number == words for _, told in steps for one in told):
        scope["asked"] = errors.asked.add  # the device is to be asked for errors later
        lines.append(f"asked({index})")
    source = "\n    ".join(["def run(addresses, stream):", *(lines or ["pass"])])
    exec(compile(source, "<launches of a plan>", "exec"), scope)
    run: Run = scope["run"]
    return run


def packed(sizes: Sequence[int], lives: Sequence[Place]) -> tuple[list[int], int]:
    """Where each of these pieces begins in one block, and the block's size; what never lives at once may overlap."""
    taken: list[tuple[int, int, Place]] = []
    for size, life in zip(sizes, lives, strict=True):
        at = 0
        for low, high, other in sorted(taken, key=lambda one: one[0]):
            apart = ends(other) <= life.since or ends(life) <= other.since
            if not apart and at < high and low < at + size:
                at = high
        taken.append((at, at + -(-max(size, 1) // ALIGNED) * ALIGNED, life))
    return [low for low, _, _ in taken], max((high for _, high, _ in taken), default=0)


def ends(life: Any) -> float:
    return float("inf") if life.until is None else life.until
