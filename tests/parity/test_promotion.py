"""The tables of tests/ops/test_promotion.py are still what PyTorch prints."""

import sys
from pathlib import Path

import pytest

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
