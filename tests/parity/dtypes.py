"""All pairs of dtypes against PyTorch's: promotion, casts, results of tensors and numbers, conversion, views, limits.

Run with a Python that has torch: `python tests/parity/dtypes.py`. Exits non-zero on any difference that is not listed.
"""

from __future__ import annotations

import io
import itertools
import sys
import warnings
from fnmatch import fnmatch

import torch

import redispatch as rd

warnings.simplefilter("ignore")
NAMES = sorted(name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype))
HELD = [(name,) for name in NAMES]
PAIRS = list(itertools.product(NAMES, NAMES))
NUMBERED = list(itertools.product(NAMES, (True, 1, 1.5, 1j)))
EXCEPTIONS = {
    "iinfo q*": "PyTorch says there that a part of it is not implemented; here, what the argument has to be",
    "finfo float4*": "the same",
    "to_complex [biusl]*": "complex64 is handy for whole numbers, too; PyTorch refuses them",
    "to float4*": "from float32 PyTorch names the kernel of another room",
    "save bits *int[1-7]": "PyTorch saves none of these",
    "save bits bit": "the same",
    "* q*": "a quantised tensor has no quantiser here: it is memory alone",
    "show float8_e8m0fnu": "its smallest number is shown as it is, where PyTorch shows zero",
}
differences = compared = 0


def answer(ask, library, args):
    try:
        return repr(ask(library, *args))
    except Exception as error:
        text = str(error).splitlines()[0]
        return f"{type(error).__name__}: {'an internal assertion' if 'INTERNAL ASSERT' in text else text}"


def compare(what, cases, ask):
    """Prints what the two libraries answer, where it is not the same. Of internal assertions, the class counts."""
    global differences, compared
    for args in cases:
        theirs, ours = answer(ask, torch, args), answer(ask, rd, args)
        compared += 1
        if theirs != ours and not ("an internal assertion" in theirs and ours.startswith("RuntimeError")):
            if excepted(what, args):
                continue
            differences += 1
            print(f"{what} {args}", theirs, ours, sep="\n    ")


def excepted(what, args):
    return any(fnmatch(f"{what} {one}", pattern) for pattern in EXCEPTIONS for one in args if isinstance(one, str))


def of(library, name, shape):
    return library.empty(shape, dtype=getattr(library, name))


def saved(library, x):
    file = io.BytesIO()
    library.save(x, file)
    file.seek(0)
    return library.load(file)


def main():
    compare("promote_types", PAIRS, lambda lib, a, b: lib.promote_types(getattr(lib, a), getattr(lib, b)))
    compare("can_cast", PAIRS, lambda lib, a, b: lib.can_cast(getattr(lib, a), getattr(lib, b)))
    for one, other in itertools.product([(2,), ()], repeat=2):
        what = f"result_type {one} {other}"
        compare(what, PAIRS, lambda lib, a, b, s=one, o=other: lib.result_type(of(lib, a, s), of(lib, b, o)))
    compare("result_type number", NUMBERED, lambda lib, a, number: lib.result_type(of(lib, a, (2,)), number))
    for fact in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        compare(fact, HELD, lambda lib, a, fact=fact: getattr(getattr(lib, a), fact))
    for fact in ("to_real", "to_complex"):
        compare(fact, HELD, lambda lib, a, fact=fact: getattr(getattr(lib, a), fact)())
    compare("finfo", HELD, lambda lib, a: lib.finfo(getattr(lib, a)))
    compare("iinfo", HELD, lambda lib, a: lib.iinfo(getattr(lib, a)))
    compare("type", HELD, lambda lib, a: of(lib, a, 2).type())
    for numbers in ([1, 0, 3], [True, False], [-1], [1.0, 2.5]):
        compare("show", HELD, lambda lib, a, n=numbers: lib.tensor(n, dtype=getattr(lib, a)))
        compare("tolist", HELD, lambda lib, a, n=numbers: lib.tensor(n, dtype=getattr(lib, a)).tolist())
        compare("numpy", HELD, lambda lib, a, n=numbers: lib.tensor(n, dtype=getattr(lib, a)).numpy())
        compare(
            "to", PAIRS, lambda lib, a, b, n=numbers: lib.tensor(n, dtype=getattr(lib, a)).to(getattr(lib, b)).tolist()
        )
    compare("save", HELD, lambda lib, a: saved(lib, lib.tensor([1, 0, 3], dtype=getattr(lib, a))).tolist())
    compare("save bits", HELD, lambda lib, a: saved(lib, of(lib, a, 3)).type())
    compare(
        "view", PAIRS, lambda lib, a, b: lib.ones(8, dtype=lib.int64).view(getattr(lib, a)).view(getattr(lib, b)).shape
    )
    print(f"{compared} answers compared, {differences} differ")
    sys.exit(differences > 0)


main()
