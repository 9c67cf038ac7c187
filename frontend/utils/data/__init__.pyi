"""Made by `python -m redispatch.stubs`."""

from .dataloader import DataLoader as DataLoader, WorkerInfo as WorkerInfo, default_collate as default_collate, default_convert as default_convert, get_worker_info as get_worker_info
from .dataset import BatchSampler as BatchSampler, ChainDataset as ChainDataset, ConcatDataset as ConcatDataset, Dataset as Dataset, DistributedSampler as DistributedSampler, IterableDataset as IterableDataset, RandomSampler as RandomSampler, Sampler as Sampler, SequentialSampler as SequentialSampler, StackDataset as StackDataset, Subset as Subset, SubsetRandomSampler as SubsetRandomSampler, TensorDataset as TensorDataset, WeightedRandomSampler as WeightedRandomSampler, random_split as random_split

