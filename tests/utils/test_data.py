"""Datasets, the order of their samples, batches, and loaders with and without workers."""

import threading
from collections import namedtuple
from itertools import count

import numpy as np
import pytest

import redispatch as rd
from redispatch.testing import assert_close
from redispatch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

x, y = rd.arange(10.0).reshape(10, 1), rd.arange(10)


class Stream(IterableDataset):
    def __init__(self, stop):
        self.stop = stop

    def __iter__(self):
        return iter(range(self.stop))

    def __len__(self):
        return self.stop


# --- datasets ---------------------------------------------------------------------------------------------------------


def test_datasets_are_made_of_tensors_and_of_each_other():
    pairs = TensorDataset(x, y)
    assert len(pairs) == 10 and [part.item() for part in pairs[3]] == [3.0, 3]
    both = pairs + TensorDataset(-x, -y)
    assert len(both) == 20 and both[13][1].item() == -3 and both[-1][1].item() == -9
    some = Subset(both, [15, 2])
    assert [part[1].item() for part in (some[0], some[1])] == [-5, 2]
    assert [part[1].item() for part in some.__getitems__([1, 0])] == [2, -5]
    assert StackDataset(y, x)[2] == (y[2], x[2]) and StackDataset(image=x, label=y)[2]["label"].item() == 2
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2] and len(ChainDataset([Stream(2), Stream(3)])) == 5


@pytest.mark.parametrize("lengths, sizes", [([7, 3], [7, 3]), ([0.5, 0.25, 0.25], [6, 2, 2]), ([0.9, 0.1], [9, 1])])
def test_a_dataset_is_split_at_random(lengths, sizes):
    parts = random_split(y, lengths, rd.Generator().manual_seed(0))
    assert [len(part) for part in parts] == sizes
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    assert [part.indices for part in random_split(y, lengths, rd.Generator().manual_seed(0))] == [
        part.indices for part in parts
    ]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda: TensorDataset(x, y[:3]), AssertionError, "Size mismatch between tensors"),
        (lambda: ConcatDataset([]), AssertionError, "datasets should not be an empty iterable"),
        (lambda: ConcatDataset([y, Stream(2)]), AssertionError, "ConcatDataset does not support IterableDataset"),
        (lambda: ConcatDataset([y])[-11], ValueError, "absolute value of index should not exceed dataset length"),
        (lambda: StackDataset(x, y[:2]), ValueError, "Size mismatch between datasets"),
        (lambda: random_split(y, [3, 3]), ValueError, "Sum of input lengths does not equal"),
        (lambda: BatchSampler([1], 0, False), ValueError, "batch_size should be a positive integer value"),
        (lambda: WeightedRandomSampler([1.0], 0), ValueError, "num_samples should be a positive integer value"),
        (lambda: DataLoader(y, sampler=[1], shuffle=True), ValueError, "mutually exclusive with shuffle"),
        (lambda: DataLoader(y, batch_sampler=[[1]], drop_last=True), ValueError, "mutually exclusive with batch_size"),
        (lambda: DataLoader(Stream(3), shuffle=True), ValueError, "expected unspecified shuffle option"),
        (lambda: DataLoader(y, num_workers=-1), ValueError, "num_workers option should be non-negative"),
        (lambda: default_collate([object()]), TypeError, "batch must contain tensors, numpy arrays, numbers"),
        (lambda: default_collate([[1], [1, 2]]), RuntimeError, "each element in list of batch should be of equal size"),
    ],
)
def test_what_does_not_fit_is_an_error(call, error, text):
    with pytest.raises(error, match=text):
        call()


# --- samplers ---------------------------------------------------------------------------------------------------------


def test_samplers_give_orders():
    rd.manual_seed(0)
    assert list(SequentialSampler(y)) == list(range(10))
    assert sorted(RandomSampler(y)) == list(range(10)) and list(RandomSampler(y)) != list(RandomSampler(y))
    assert len(list(RandomSampler(y, num_samples=25))) == 25
    assert set(RandomSampler(y, replacement=True, num_samples=300)) == set(range(10))
    assert sorted(SubsetRandomSampler([4, 2, 8])) == [2, 4, 8]
    drawn = list(WeightedRandomSampler([0.0, 1.0, 3.0], 400))
    assert 0 not in drawn and 2.0 < drawn.count(2) / drawn.count(1) < 4.5
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]


@pytest.mark.parametrize("drop_last, wanted", [(False, [[0, 1, 2], [3, 4]]), (True, [[0, 1, 2]])])
def test_batches_of_numbers(drop_last, wanted):
    sampler = BatchSampler(range(5), 3, drop_last)
    assert list(sampler) == wanted and len(sampler) == len(wanted)


# --- batches ----------------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "image label")


@pytest.mark.parametrize(
    "batch, wanted",
    [
        ([1, 2], rd.tensor([1, 2])),
        ([1.5, 2], rd.tensor([1.5, 2], dtype=rd.float64)),
        ([True, False], rd.tensor([True, False])),
        ([rd.ones(2), rd.zeros(2)], rd.tensor([[1.0, 1], [0, 0]])),
        ([np.ones(2), np.zeros(2)], rd.tensor([[1.0, 1], [0, 0]], dtype=rd.float64)),
        ([np.float32(1), np.float32(2)], rd.tensor([1.0, 2])),
    ],
)
def test_numbers_and_arrays_become_tensors(batch, wanted):
    assert_close(default_collate(batch), wanted)


def test_numbers_with_replacement_are_drawn_in_pieces():
    generator = rd.Generator().manual_seed(1)
    sampler = iter(RandomSampler(range(10), replacement=True, num_samples=100, generator=generator))
    one = next(sampler)
    other = rd.Generator().manual_seed(1)
    assert one == rd.randint(10, (32,), generator=other)[0].item() and generator.get_state().equal(other.get_state())
    assert len([one, *sampler]) == 100


def test_containers_stay_containers():
    assert default_collate(["a", "b"]) == ["a", "b"]
    made = default_collate([{"x": (1, "a")}, {"x": (2, "b")}])
    assert made["x"][0].tolist() == [1, 2] and made["x"][1] == ("a", "b")
    pair = default_collate([Pair(1, 2.0), Pair(3, 4.0)])
    assert isinstance(pair, Pair) and pair.label.tolist() == [2, 4]
    converted = default_convert({"x": [np.ones(2), "a", 3]})
    assert converted["x"][0].tolist() == [1, 1] and converted["x"][1:] == ["a", 3]


# --- loaders ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_loader_gives_every_sample_once_in_order(workers):
    loader = DataLoader(TensorDataset(x, y), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert [len(labels) for _, labels in batches] == [4, 4, 2] and len(loader) == 3
    assert rd.cat([labels for _, labels in batches]).tolist() == list(range(10))
    assert rd.cat([inputs for inputs, _ in batches]).shape == (10, 1)
    assert len(list(loader)) == 3  # a second pass


@pytest.mark.parametrize("workers", [0, 2])
def test_a_shuffled_loader_has_another_order_each_time(workers):
    loader = DataLoader(y, batch_size=10, shuffle=True, num_workers=workers, generator=rd.Generator().manual_seed(0))
    (one,), (other,) = list(loader), list(loader)
    assert sorted(one.tolist()) == sorted(other.tolist()) == list(range(10)) and one.tolist() != other.tolist()


def test_samples_may_come_as_they_are_or_by_batches_of_ones_own():
    assert [sample.shape for sample in DataLoader(x, batch_size=None)] == [(1,)] * 10
    assert [batch.tolist() for batch in DataLoader(y, batch_sampler=[[1, 2], [7]])] == [[1, 2], [7]]
    assert [batch.tolist() for batch in DataLoader(y, batch_size=4, drop_last=True)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert list(DataLoader(y, batch_size=5, collate_fn=len)) == [5, 5]
    assert [batch.tolist() for batch in DataLoader(y, batch_size=2, sampler=[9, 0, 3])] == [[9, 0], [3]]


@pytest.mark.parametrize("drop_last, wanted", [(False, [[0, 1, 2], [3, 4]]), (True, [[0, 1, 2]])])
def test_streams_come_in_batches(drop_last, wanted):
    loader = DataLoader(Stream(5), batch_size=3, drop_last=drop_last)
    assert [batch.tolist() for batch in loader] == wanted and len(loader) == len(wanted)


def test_workers_know_who_they_are_and_share_a_stream_out():
    class Shared(Stream):
        def __iter__(self):
            info = get_worker_info()
            return iter(range(info.id, self.stop, info.num_workers))

    begun = []
    loader = DataLoader(Shared(7), batch_size=2, num_workers=2, worker_init_fn=begun.append)
    assert sorted(i for batch in loader for i in batch.tolist()) == list(range(7))
    assert sorted(begun) == [0, 1] and get_worker_info() is None


def test_what_a_worker_raises_reaches_the_loop():
    class Broken:
        def __getitem__(self, index):
            if index == 5:
                raise LookupError("sample 5 is broken")
            return index

        def __len__(self):
            return 8

    with pytest.raises(LookupError, match="sample 5 is broken"):
        list(DataLoader(Broken(), num_workers=2))


def test_a_worker_that_takes_too_long_is_an_error():
    over = threading.Event()

    class Slow:
        def __getitem__(self, index):
            over.wait(5)
            return index

        def __len__(self):
            return 1

    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.05 seconds"):
        try:
            list(DataLoader(Slow(), num_workers=1, timeout=0.05))
        finally:
            over.set()


def test_a_loop_may_be_left_early():
    seen = []

    class Counted:
        def __getitem__(self, index):
            seen.append(index)
            return index

        def __len__(self):
            return 10_000

    for _ in zip(count(), DataLoader(Counted(), num_workers=2), strict=False):
        break
    assert len(seen) < 100


def test_a_model_is_trained_from_a_loader():
    rd.manual_seed(0)
    inputs = rd.randn(200, 2)
    data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    train, test = random_split(data, [150, 50])
    model = rd.nn.Linear(2, 2)
    optimizer = rd.optim.SGD(model.parameters(), lr=0.5)
    for _ in range(5):
        for batch, labels in DataLoader(train, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            rd.nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
    right = sum((model(batch).argmax(1) == labels).sum().item() for batch, labels in DataLoader(test, batch_size=25))
    assert right >= 45


def test_processes_share_out_what_they_all_draw_alike():
    shares = [[*DistributedSampler(range(10), 4, rank, seed=1)] for rank in range(4)]
    assert {len(share) for share in shares} == {3} and {*sum(shares, [])} == {*range(10)}
    assert [[*DistributedSampler(range(5), 2, rank, shuffle=False)] for rank in (0, 1)] == [[0, 2, 4], [1, 3, 0]]
    assert [*DistributedSampler(range(5), 2, 1, shuffle=False, drop_last=True)] == [1, 3]
    sampler = DistributedSampler(range(100), 2, 0)
    first = [*sampler]
    sampler.set_epoch(1)
    assert [*sampler] != first and len(sampler) == 50
    with pytest.raises(ValueError, match=r"Invalid rank 2, rank should be in the interval \[0, 1\]"):
        DistributedSampler(range(3), 2, 2)
    with pytest.raises(RuntimeError, match="Requires distributed package to be available"):
        DistributedSampler(range(3))


def test_a_worker_has_a_generator_of_its_own():
    class Drawn(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return rd.rand(1, generator=rd.random.thread_safe_generator()).item()

    assert rd.thread_safe_generator() is None
    rd.manual_seed(0)
    first = [*DataLoader(Drawn(), batch_size=None, num_workers=1)]
    rd.manual_seed(0)
    assert [*DataLoader(Drawn(), batch_size=None, num_workers=1)] == first and len({*first}) == 4
