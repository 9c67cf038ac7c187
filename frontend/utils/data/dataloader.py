"""DataLoader: the samples of a dataset, in an order, in batches.

With workers, threads read ahead: kernels and most readers of files let other threads run. Batches come in the same
order as without; what the workers share with each other and with the rest is the dataset itself.
"""

from __future__ import annotations

import copy
import re
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from inspect import signature
from itertools import islice
from typing import Any

import numpy as np

from redispatch.dispatch.tensor import Tensor, dtypes, pinned_memory
from redispatch.kernels.ops.creation import empty
from redispatch.kernels.ops.from_data import as_tensor, tensor
from redispatch.kernels.ops.generators import Generator
from redispatch.kernels.ops.shape import stack

from .dataset import BatchSampler, IterableDataset, RandomSampler, SequentialSampler

Collate = Callable[..., Any]
_collate_fn_t = Collate


class _BaseDataLoaderIter:
    """The class of PyTorch's iterations. None is of it: an iteration here is a generator."""


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One without workers."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One with workers."""


class _DatasetKind:
    """The numbers of the two kinds of datasets."""

    Map, Iterable = 0, 1


def collate(batch: Sequence[Any], *, collate_fn_map: Mapping[Any, Collate] | None = None) -> Any:
    """One batch of these samples; the table says what becomes of types, the first that fits.

    Errors: TypeError for a type that is neither in it nor a container; RuntimeError for sequences of different length.
    """
    first, table = batch[0], collate_fn_map or {}
    kinds = [type(first)] if type(first) in table else [kind for kind in table if isinstance(first, kind)]
    if kinds:
        return table[kinds[0]](batch, collate_fn_map=table)

    def each(samples: Sequence[Any]) -> Any:
        return collate(samples, collate_fn_map=table)

    if isinstance(first, Mapping):
        made: Any = {key: each([sample[key] for sample in batch]) for key in first}
        return like(first, made, MutableMapping)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(each, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        made = [each(samples) for samples in zip(*batch, strict=True)]
        return made if isinstance(first, tuple) else like(first, made, MutableSequence)
    raise cannot_collate(type(first))


def cannot_collate(found: Any) -> TypeError:
    return TypeError(
        f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {found}"
    )


def like(first: Any, made: Any, mutable: type) -> Any:
    """Returns the batch in a container of the first sample's class, if that can be had."""
    if type(first) in (dict, list):
        return made
    try:
        if not isinstance(first, mutable):
            return type(first)(made)
        clone: Any = copy.copy(first)
        for key, value in made.items() if isinstance(made, dict) else enumerate(made):
            clone[key] = value
        return clone
    except TypeError:
        return made


np_str_obj_array_pattern = re.compile("[SaUO]")  # kinds of numpy's dtypes of which there are no tensors


def collate_tensor_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return stack(list(batch), 0)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise cannot_collate(batch[0].dtype)
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return tensor(list(batch), dtype=dtypes.float64)


def collate_int_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return tensor(list(batch))


def collate_str_fn(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    return batch


# The first type that fits counts, so that what is more special stands before what is less.
default_collate_fn_map: dict[Any, Collate] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Sequence[Any]) -> Any:
    """One batch of these samples, with a new first dimension."""
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """A sample as it is, but with tensors for arrays: what a loader without batches gives."""
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SaUO" else as_tensor(data)
    made = changed_inside(data, default_convert)
    return list(made) if isinstance(made, tuple) and not hasattr(made, "_fields") else made


def pin_memory(data: Any, device: Any = None) -> Any:
    """Data with its tensors in pinned memory.

    What has a method `pin_memory` answers itself, a container too; the method is given a device if it takes one.
    """
    own = getattr(data, "pin_memory", None)
    if own is None:
        return changed_inside(data, partial(pin_memory, device=device))
    takes_device = device is not None and not isinstance(data, Tensor) and "device" in signature(own).parameters
    return own(device=device) if takes_device else own()


def changed_inside(data: Any, change: Callable[[Any], Any]) -> Any:
    """A container of the same class, with each value in it changed; anything else as it is."""
    if isinstance(data, Mapping):
        return like(data, {key: change(value) for key, value in data.items()}, MutableMapping)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(change, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        made = [change(value) for value in data]
        return like(data, made, MutableSequence)
    return data


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """The facts that a worker knows of itself."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_here = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """The worker that calls this; None outside of any."""
    return getattr(_here, "info", None)


def thread_safe_generator() -> Generator | None:
    """Returns the generator of the worker that calls this, seeded with its seed; None outside of any."""
    info = get_worker_info()
    if info is not None and not hasattr(_here, "generator"):
        _here.generator = Generator().manual_seed(info.seed)
    return None if info is None else _here.generator


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Returns four 32-bit numbers by which a worker may seed other generators, such as numpy's."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(word) for word in np.random.SeedSequence(words).generate_state(4)]


class _Endless:
    """The sampler of an iterable dataset: nothing is to be chosen."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Iterates over a dataset in batches.

    shuffle:       in a random order, new for each pass; or `sampler` gives the order, or `batch_sampler` the batches
    batch_size:    None for samples as they are
    num_workers:   threads that read ahead, `prefetch_factor` batches each; `worker_init_fn(id)` is called in each
    collate_fn:    makes a batch of a list of samples
    drop_last:     leaves out a last batch that is not full
    timeout:       seconds to wait for a batch; RuntimeError when they are over
    pin_memory:    moves the tensors of batches to memory that an accelerator reads by itself; warns where there is none
    `multiprocessing_context` and `persistent_workers` are about processes.

    Errors: ValueError for options that exclude each other.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        iterable = isinstance(dataset, IterableDataset)
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        check_order(iterable, shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            sampler = the_sampler(dataset, iterable, bool(shuffle), generator)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn = collate_fn or (default_convert if batch_sampler is None else default_collate)
        self.persistent_workers = persistent_workers
        self.in_order = in_order

    def __iter__(self) -> Iterator[Any]:
        batches = self._unpinned()
        if not self.pin_memory:
            return batches
        if pinned_memory(0) is None:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be "
                "used.",
                UserWarning,
                stacklevel=2,
            )
            return batches
        return map(partial(pin_memory, device=self.pin_memory_device or None), batches)

    def _unpinned(self) -> Iterator[Any]:
        seed = int(
            empty((), dtype=dtypes.int64).random_(generator=self.generator).item()
        )  # before a sampler draws its own
        if isinstance(self.dataset, IterableDataset):
            return self._of_streams(seed)
        index = iter(self.sampler if self.batch_sampler is None else self.batch_sampler)
        return self._ahead(index, seed) if self.num_workers else map(self._fetched, index)

    def __len__(self) -> int:
        """The number of batches."""
        if isinstance(self.dataset, IterableDataset):
            count = len(self.dataset)  # type: ignore[arg-type]  # one without a length has none here, either
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)  # type: ignore[arg-type]  # of the right type, which mypy cannot tell

    # Fetching -----------------------------------------------------------------------------------------------------

    def _fetched(self, index: Any) -> Any:
        """The batch with these numbers, or the sample with this one."""
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        several = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(several(index) if callable(several) else [self.dataset[i] for i in index])

    def _batches_of(self, stream: Iterator[Any]) -> Iterator[Any]:
        """The batches of samples that come one after the other."""
        if self.batch_sampler is None:
            yield from map(self.collate_fn, stream)
            return
        for numbers in self.batch_sampler:
            batch = list(islice(stream, len(numbers)))
            if not batch or (self.drop_last and len(batch) < len(numbers)):
                return
            yield self.collate_fn(batch)
            if len(batch) < len(numbers):
                return

    # Workers ------------------------------------------------------------------------------------------------------

    def _ahead(self, index: Iterator[Any], seed: int) -> Iterator[Any]:
        """The batches in order, so many of them fetched ahead by threads."""
        with self._pool(seed) as pool:
            waiting: deque[Future[Any]] = deque()
            ahead = self.num_workers * (self.prefetch_factor or 2)
            for numbers in islice(index, ahead):
                waiting.append(pool.submit(self._fetched, numbers))
            try:
                while waiting:
                    batch = self._waited_for(waiting.popleft())
                    for numbers in islice(index, 1):
                        waiting.append(pool.submit(self._fetched, numbers))
                    yield batch
            finally:  # whoever leaves the loop early does not wait for what was read ahead
                pool.shutdown(wait=False, cancel_futures=True)

    def _of_streams(self, seed: int) -> Iterator[Any]:
        """The batches of an iterable dataset: with workers, of one stream for each, in turn."""
        if not self.num_workers:
            yield from self._batches_of(iter(self.dataset))
            return
        over = object()
        pools = [self._pool(seed, worker) for worker in range(self.num_workers)]
        try:
            made = [pool.submit(lambda: self._batches_of(iter(self.dataset))) for pool in pools]
            streams = [self._waited_for(stream) for stream in made]
            turns = deque(
                (pool, stream, pool.submit(next, stream, over)) for pool, stream in zip(pools, streams, strict=True)
            )
            while turns:
                pool, stream, coming = turns.popleft()
                batch = self._waited_for(coming)
                if batch is not over:
                    turns.append((pool, stream, pool.submit(next, stream, over)))
                    yield batch
        finally:
            for pool in pools:
                pool.shutdown(wait=False, cancel_futures=True)

    def _waited_for(self, coming: Future[Any]) -> Any:
        try:
            return coming.result(self.timeout or None)
        except TimeoutError:
            raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds") from None

    def _pool(self, seed: int, worker: int | None = None) -> ThreadPoolExecutor:
        """All workers, or the one with this number: threads that know who they are."""
        numbers = iter(range(self.num_workers) if worker is None else [worker])
        lock = threading.Lock()

        def begin() -> None:
            with lock:
                number = next(numbers)
            _here.info = WorkerInfo(number, self.num_workers, seed + number, self.dataset)
            if self.worker_init_fn is not None:
                self.worker_init_fn(number)

        return ThreadPoolExecutor(self.num_workers if worker is None else 1, "loader", begin)


def the_sampler(dataset: Any, iterable: bool, shuffle: bool, generator: Any) -> Iterable[Any]:
    """The order of a dataset where none was given."""
    if iterable:
        return _Endless()
    return RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)


def check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
            "multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def check_order(iterable: bool, shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    """An iterable dataset has its own order."""
    if shuffle not in (None, True, False):
        warnings.warn(f"shuffle should be a bool, but got {shuffle!r}", stacklevel=3)
    if not iterable:
        return
    options = {"shuffle": shuffle or None, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
            )
