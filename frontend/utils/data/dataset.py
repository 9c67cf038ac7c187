"""Datasets: what `dataset[i]` and `len(dataset)` give, or what iteration gives; datasets made of others; and samplers.

Read next: dataloader.py.
"""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, cycle, islice
from typing import Any, Generic, TypeVar

from redispatch.dispatch.tensor import dtypes
from redispatch.kernels.ops.creation import empty
from redispatch.kernels.ops.from_data import as_tensor
from redispatch.kernels.ops.generators import Generator
from redispatch.kernels.ops.random import randint, randperm

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number: a subclass gives `__getitem__`, and `__len__` if there is a number of them."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Samples one after the other: a subclass gives `__iter__`."""

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]  # as PyTorch's does
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Any, ...]]):
    """Tensors of one length: sample i is the tuple of their elements i. AssertionError for different lengths."""

    def __init__(self, *tensors: Any) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset[Any]):
    """Datasets of one length side by side: tuples of their samples, or dictionaries where they were given by name.

    Errors: ValueError for none, for different lengths, or for both ways at once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output"
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        (self._length,) = lengths

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one behind the other. Errors: AssertionError for none, and for one without numbers."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(accumulate(len(dataset) for dataset in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        place = bisect_right(self.cumulative_sizes, index)
        return self.datasets[place][index - (self.cumulative_sizes[place - 1] if place else 0)]


class ChainDataset(IterableDataset[Any]):
    """Iterable datasets one behind the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of a dataset that have these numbers."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> T_co:
        chosen = [self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]
        return self.dataset[chosen]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        """Several at once, as the dataset likes to give them."""
        chosen = [self.indices[i] for i in indices]
        several = getattr(self.dataset, "__getitems__", None)
        return several(chosen) if callable(several) else [self.dataset[i] for i in chosen]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], generator: Any = None) -> list[Subset[Any]]:
    """Subsets of these lengths, or of these shares, which add up to 1, drawn at random.

    Errors: ValueError where the lengths do not add up to that of the dataset.
    """
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = lengths_of_shares(lengths, len(dataset))
    if sum(lengths) != len(dataset):
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(len(dataset), generator=generator).tolist()
    ends = accumulate(lengths)
    return [Subset(dataset, order[int(end - size) : int(end)]) for end, size in zip(ends, lengths, strict=True)]


def lengths_of_shares(shares: Sequence[float], total: int) -> list[int]:
    """Whole numbers near these shares of `total`; what is left over goes to the first, one each."""
    for index, share in enumerate(shares):
        if not 0 <= share <= 1:
            raise ValueError(f"Fraction at index {index} is not between 0 and 1")
    sizes = [math.floor(total * share) for share in shares]
    for index in range(total - sum(sizes)):
        sizes[index % len(sizes)] += 1
    for index, size in enumerate(sizes):
        if size == 0:
            warnings.warn(
                f"Length of split at index {index} is 0. This might result in an empty dataset.", stacklevel=3
            )
    return sizes


# --- Samplers: in which order a loader takes the samples of a dataset, by their numbers -------------------------------


class Sampler(Generic[T_co]):
    """Numbers of samples, or lists of them: a subclass gives `__iter__`, and `__len__` if that is known."""

    def __init__(self, data_source: Any = None) -> None:
        super().__init__()

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ..."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


PIECE = 32  # numbers that are drawn at once, as in PyTorch


class RandomSampler(Sampler[int]):
    """In random order; with `replacement`, each drawn from all. `num_samples`: by default as many as there are.

    Errors: TypeError for a `replacement` that is no bool; ValueError for a number of samples that is not positive.
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Any = None
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples < 0:
            raise ValueError(f"num_samples should be a non-negative integer value, but got num_samples={num_samples}")

    @property
    def num_samples(self) -> int:
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, generator = len(self.data_source), self.generator or seeded_generator()
        if self.replacement:
            for start in range(0, self.num_samples, PIECE):  # whoever takes a few waits for a few
                piece = min(PIECE, self.num_samples - start)
                yield from randint(count, (piece,), generator=generator).tolist()
            return
        left = self.num_samples
        while left > 0:
            order = randperm(count, generator=generator).tolist()
            yield from order[:left]
            left -= count

    def __len__(self) -> int:
        return self.num_samples


def seeded_generator() -> Any:
    """A generator whose seed is drawn from the usual one."""
    return Generator().manual_seed(int(empty((), dtype=dtypes.int64).random_().item()))


class DistributedSampler(Sampler[int]):
    """The share of one of `num_replicas` processes: every so many-th sample, in an order that all of them draw alike.

    The shares are of one length: the first samples come again at the end, or with `drop_last` the last are left out.
    `set_epoch` gives another order. Errors: RuntimeError without a number of processes, or this one's; ValueError for a
    rank that is none of them.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            raise RuntimeError("Requires distributed package to be available")
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.shuffle, self.seed, self.drop_last, self.epoch = shuffle, seed, drop_last, 0
        self.num_samples = len(dataset) // num_replicas if drop_last else -(-len(dataset) // num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        indices: list[int] = [*range(len(self.dataset))]
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            indices = randperm(len(indices), generator=generator).tolist()
        return islice(cycle(indices), self.rank, self.total_size, self.num_replicas)

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Chooses the order of the next iteration."""
        self.epoch = epoch


class SubsetRandomSampler(Sampler[int]):
    """These numbers, in random order."""

    def __init__(self, indices: Sequence[int], generator: Any = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Numbers drawn with probabilities in the proportion of `weights`, with or without replacement."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        yield from self.weights.multinomial(self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` numbers each; the last may be shorter, unless `drop_last`."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        numbers = iter(self.sampler)
        while batch := list(islice(numbers, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]  # it has a length, or this one has none, either
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
