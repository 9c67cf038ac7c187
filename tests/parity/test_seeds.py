"""Seeds against real torch: each call and each program that `tests/ops/test_seeds.py` records, from 40 seeds.

Runs where real torch is: `make parity`.
"""

import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="compares with real torch, which is not installed here")

import redispatch as rd  # noqa: E402  # after importorskip: without torch nothing here is of use

RECORDED = runpy.run_path(str(Path(__file__).parents[1] / "ops" / "test_seeds.py"))
SEEDS = [0, 1, 7, 2**32 - 1, 2**40 + 1, 2**63, -3, *range(100, 133)]


@pytest.mark.parametrize("call", RECORDED["CALLS"])
def test_numbers_and_states_are_those_of_torch(call):
    theirs = (torch.Generator().manual_seed(seed) for seed in SEEDS)
    assert RECORDED["digest"](rd, call, map(RECORDED["twister"], SEEDS)) == RECORDED["digest"](torch, call, theirs)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # torch's, of its Transformer
@pytest.mark.parametrize("program", RECORDED["PROGRAMS"])
def test_layers_and_programs_draw_what_they_draw_in_torch(program):
    both = (RECORDED["digest_of_program"](t, program, SEEDS[:10]) for t in (rd, torch))
    assert len({*both}) == 1


def test_a_state_goes_both_ways():
    ours, theirs = rd.Generator().manual_seed(5), torch.Generator().manual_seed(6)
    torch.randn(3, generator=theirs)
    ours.set_state(rd.from_numpy(theirs.get_state().numpy()))
    assert rd.randn(4, generator=ours).tolist() == torch.randn(4, generator=theirs).tolist()
    theirs.set_state(torch.from_numpy(ours.get_state().numpy()))
    assert rd.randn(40, generator=ours).tolist() == torch.randn(40, generator=theirs).tolist()
