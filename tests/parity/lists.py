"""Lists of PyTorch's that programs go through: what can be overridden, and the operators that autocast casts for.

Run with a Python that has torch: `python tests/parity/lists.py`. Exits non-zero where a name is in one list alone, but
for what is not here for a reason (`redispatch.torch_names`).
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import redispatch  # after the path is set
from redispatch import _absent

SPACES = ["", "Tensor", "functional", "nn.functional", "linalg", "fft", "special"]
KEYS = ("AutocastCPU", "AutocastCUDA")
# of PyTorch's list: other names of methods, which are functions of their own here
KNOWN = {f"Tensor.__{name}__" for name in ("abs", "idiv", "neg", "pos", "rdiv")}


def overridable(library) -> set[str]:
    """Returns the names of the functions in the list: "add", "Tensor.add"."""
    listed = library.overrides.get_overridable_functions()
    found = set()
    for space in SPACES:
        place = library
        for word in filter(None, space.split(".")):
            place = getattr(place, word)
        members = listed[place]
        for name in dir(place):
            value = getattr(place, name, None)
            if not isinstance(value, list | dict | set) and value in members:
                found.add(f"{space}.{name}".lstrip("."))
    return found


def cast(library, key: str) -> set[str]:
    return set(library._C._dispatch_get_registrations_for_dispatch_key(key))


def is_absent(name: str) -> bool:
    module, _, short = name.rpartition(".")
    return name in KNOWN or bool(_absent.why(module, short))


def main() -> int:
    lists = {"overridable": (overridable(redispatch), overridable(torch))}
    lists |= {key: (cast(redispatch, key), cast(torch, key)) for key in KEYS}
    wrong = 0
    for title, (ours, theirs) in lists.items():
        odd = {*(name for name in theirs - ours if not is_absent(name)), *(ours - theirs)}
        print(f"{title}: {len(ours & theirs)} in both; in one alone: {' '.join(sorted(odd)) or 'none'}")
        wrong += len(odd)
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
