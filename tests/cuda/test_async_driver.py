"""The late simulator: programs that wait where they must are right on it, others are found."""

import pytest

import redispatch as rd
from redispatch.kernels import cuda
from redispatch.kernels.cuda.choose import found
from redispatch.kernels.cuda.simulated_driver import LateDriver
from redispatch.kernels.cuda.simulator import KernelFault

from .conftest import devices_of

pytestmark = pytest.mark.skipif(not cuda.available(), reason="kernels are compiled: install redispatch[cuda]")


@pytest.fixture
def late():
    with devices_of(LateDriver(1 << 26)) as driver:
        yield driver


def test_nothing_is_done_before_it_is_waited_for(late):
    x = rd.arange(4.0).cuda()
    y = x * 2
    assert late.queues[0]
    event = rd.cuda.Event()
    assert event.query()  # as long as it was not recorded
    event.record()
    z = y + 1
    assert not event.query()
    event.synchronize()
    assert event.query() and late.queues[0]
    assert z.tolist() == [1, 3, 5, 7] and not late.queues[0]


def test_an_event_that_is_recorded_again_stands_for_the_later_place(late):
    x, event = rd.ones(2).cuda(), rd.cuda.Event()
    event.record()
    y = x * 2
    event.record()
    side = rd.cuda.Stream()
    side.wait_event(event)
    with rd.cuda.stream(side):
        assert (y + 1).tolist() == [3, 3]


def test_a_stream_that_nobody_waited_for_is_found(late):
    x, side = rd.ones(4).cuda(), rd.cuda.Stream()
    side.wait_stream(rd.cuda.current_stream())
    with rd.cuda.stream(side):
        y = x * 3
    with pytest.raises(KernelFault, match="was never written"):
        (y + 1).tolist()
    rd.cuda.current_stream().wait_stream(side)
    assert (y + 1).tolist() == [4] * 4


def doubled_on_the_side(side, recorded):
    """Its argument's memory goes, and comes into other hands, while the other stream has not read it yet."""
    x = rd.full((1000,), 2.0, device="cuda") * 2
    side.wait_stream(rd.cuda.current_stream())
    with rd.cuda.stream(side):
        y = x * 2
    if recorded:
        x.record_stream(side)
    del x
    other = rd.zeros(1000, device="cuda") + 7
    rd.cuda.current_stream().synchronize()
    rd.cuda.current_stream().wait_stream(side)
    return y, other


def test_memory_that_another_stream_still_reads_is_found_and_kept_by_record_stream(late):
    y, other = doubled_on_the_side(rd.cuda.Stream(), recorded=True)
    assert y.eq(8).all().item() and other.eq(7).all().item()
    y, _ = doubled_on_the_side(rd.cuda.Stream(), recorded=False)
    with pytest.raises(KernelFault, match="given back|never written"):
        y.sum().item()


def train(batches, device):
    """Losses of a model whose batches are brought by a stream of their own, one ahead."""
    rd.manual_seed(0)
    model = rd.nn.Sequential(rd.nn.Linear(4, 8), rd.nn.Tanh(), rd.nn.Linear(8, 1)).to(device)
    optimizer = rd.optim.Adam(model.parameters(), lr=0.05)
    side = rd.cuda.Stream() if device == "cuda" else None
    losses = []

    def bring(batch):
        if side is None:
            return batch
        with rd.cuda.stream(side):
            return batch.pin_memory().to(device, non_blocking=True)

    following = bring(batches[0])
    for batch in [*batches[1:], batches[0]]:
        if side is not None:
            rd.cuda.current_stream().wait_stream(side)
            following.record_stream(rd.cuda.current_stream())
        now, following = following, bring(batch)
        optimizer.zero_grad()
        loss = (model(now).squeeze(1) - now.sum(1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses]


def test_a_model_trains_with_batches_that_are_fetched_ahead(late):
    batches = [rd.randn(6, 4) for _ in range(4)]
    assert train(batches, "cuda") == pytest.approx(train(batches, "cpu"), rel=1e-4)


def test_graphs_are_replayed_in_their_turn(late):
    x = rd.zeros(4, device="cuda")
    (x * 2 + 1).sum()  # what is sent once is there
    graph = rd.cuda.CUDAGraph()
    with rd.cuda.graph(graph):
        y = (x * 2 + 1).sum()
    sums = []
    for value in (1.0, 2.0):
        x.fill_(value)
        graph.replay()
        sums.append(y + 0)
    assert [one.item() for one in sums] == [12, 20]


def test_by_a_word_in_the_environment(monkeypatch):
    monkeypatch.setenv("REDISPATCH_CUDA", "late")
    assert isinstance(found(), LateDriver)
