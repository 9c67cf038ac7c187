"""Datasets and loaders: `DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)`.

Read in this order: dataset, dataloader.
"""

from redispatch import _moved, _names

__all__ = _names.take(
    globals(),
    {
        ".dataloader": "DataLoader WorkerInfo default_collate default_convert get_worker_info",
        ".dataset": """
            BatchSampler ChainDataset ConcatDataset Dataset DistributedSampler IterableDataset RandomSampler Sampler
            SequentialSampler StackDataset Subset SubsetRandomSampler TensorDataset WeightedRandomSampler random_split
        """,
    },
)

_moved.join(__name__)
