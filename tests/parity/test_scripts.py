"""The scripts of this folder, and promotion, against the torch that is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# The comparisons with real torch that are programs of their own, each run as one test of `make parity` ----------------

pytest.importorskip(
    "torch", reason="compares with real torch; `make parity` installs it into an environment of its own"
)

HERE = Path(__file__).parent
SCRIPTS = sorted(p.name for p in HERE.glob("*.py") if not p.name.startswith("test_") and p.name != "loading.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_agrees_with_torch(script):
    done = subprocess.run(
        [sys.executable, str(HERE / script)], capture_output=True, text=True, timeout=600, env=os.environ.copy()
    )
    print(done.stdout[-4000:])
    assert done.returncode == 0, f"{script} found differences:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


# The tables of tests/ops/test_promotion.py are still what PyTorch prints ----------------------------------------------

torch = pytest.importorskip("torch", reason="compares with real torch, which is not installed here")

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.ops.promotion import BINARY, RANKS, binary_table, unary_row  # noqa: E402  # after importorskip
from tests.ops.test_promotion import EXPECTED_OF_ONE, EXPECTED_OF_TWO, KIND  # noqa: E402  # after the path is set


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_pytorch_gives_this_dtype_to_two_operands(name, ranks):
    assert binary_table(torch, name, ranks) == EXPECTED_OF_TWO[name, KIND.get(ranks, ranks)]


@pytest.mark.parametrize("name", EXPECTED_OF_ONE)
def test_pytorch_gives_this_dtype_to_one_operand(name):
    assert unary_row(torch, name) == EXPECTED_OF_ONE[name]
