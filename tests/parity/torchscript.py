"""Programs as TorchScript, here and in PyTorch: results, what is printed, schemas.

Run with a Python that has torch: `python tests/parity/torchscript.py`. Exits non-zero on any difference.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import torch as theirs

import redispatch as ours

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.jit.programs import NOT_IN_PYTORCH, PROGRAMS  # after the path is set
from tests.jit.running import called, defined

warnings.simplefilter("ignore")


def run(library, name, source, calls):
    """Returns what a program's calls give in one library, or its error."""
    try:
        function = library.jit.script(defined(library, name, source).f)
        return [str(function.schema), *(called(library, function, arguments) for arguments in calls)]
    except Exception as problem:
        return [f"{type(problem).__name__}: {problem}"]


different = 0
for name, source, calls in PROGRAMS:
    if name in NOT_IN_PYTORCH:
        continue
    mine, other = (run(library, name, source, calls) for library in (ours, theirs))
    if mine != other:
        different += 1
        print(f"{name}:\n  here    {mine}\n  PyTorch {other}")
print(f"{len(PROGRAMS) - len(NOT_IN_PYTORCH)} programs, {different} differ")
sys.exit(different > 0)
