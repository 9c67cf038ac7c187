"""Files go both ways: what redispatch saves PyTorch loads with weights_only=True, and the other way round.

Run with a Python that has torch: `python tests/parity/checkpoints.py`. Exits non-zero on any difference.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections import OrderedDict
from typing import Any

import torch

import redispatch as rd
import redispatch.nn

warnings.simplefilter("ignore")  # TypedStorage is deprecated, and is in old files


def contents(library: Any) -> dict[str, Any]:
    """One of each thing that a checkpoint may hold."""
    x = library.arange(6.0).view(2, 3)
    marked, tagged = library.ones(3), library.nn.Parameter(library.ones(2))
    marked.note, tagged.note = 4, [5]
    return {
        "x": x,
        "transposed": x.t(),
        "column": x[:, 1],
        "empty": library.empty(0, 2),
        "conjugate": library.tensor([1 + 2j]).conj(),
        "negative": library.tensor([1 + 2j]).conj().imag,
        "meta": library.empty(2, 3, device="meta"),
        "parameter": library.nn.Parameter(library.ones(2), requires_grad=False),
        "tagged": tagged,
        "marked": marked,
        "leaf": library.ones(2, requires_grad=True),
        "state": library.nn.Linear(2, 3).state_dict(),
        "untyped": library.ones(3).untyped_storage(),
        "typed": x.storage(),
        "library": [library.bfloat16, library.Size([1, 2]), library.device("cpu"), library.device("cuda:1")],
        "plain": [1, -2.5, None, True, "text", b"bytes", 2**70, 1j, (), (1,), {3}, OrderedDict(a={})],
        **{str(kind): library.ones(2, 2, dtype=getattr(library, kind)) for kind in DTYPES},
    }


DTYPES = """
    bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
""".split()


def described(value: Any) -> Any:
    """The value as text and numbers, in which the two libraries agree."""
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, list | tuple) and not type(value).__name__ == "Size":
        return [described(item) for item in value]
    if isinstance(value, torch.Tensor | rd.Tensor):
        values = None if value.is_meta else value.tolist()
        facts = value.dtype, value.stride(), value.storage_offset(), value.requires_grad, vars(value)
        return type(value).__name__, str(tuple(value.shape)), *map(str, facts), values
    if "Storage" in type(value).__name__:
        return value.nbytes()  # PyTorch shows an untyped one as a typed one when it loads tensors only
    return str(value)


def check(name: str, found: Any, expected: Any) -> bool:
    differing = [key for key in expected if described(found[key]) != described(expected[key])]
    shared = found["x"].data_ptr() == found["transposed"].data_ptr() == found["column"].data_ptr() - 4
    for key in differing:
        print(f"{name}: {key}: {described(found[key])}, expected {described(expected[key])}")
    print(f"{name}: {len(expected) - len(differing)} of {len(expected)} agree; storages shared: {shared}")
    return shared and not differing


def passed(save: Any, load: Any, value: Any, **options: Any) -> Any:
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    return load(file, **options)


def main() -> int:
    ours, theirs = contents(rd), contents(torch)
    good = check("saved here, loaded in PyTorch", passed(rd.save, torch.load, ours, weights_only=True), ours)
    good &= check("saved in PyTorch, loaded here", passed(torch.save, rd.load, theirs), theirs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
