"""Schedules of learning rates.

Read in this order: scheduler, cycles, compound.
"""

from redispatch import _moved, _names

__all__ = _names.take(
    globals(),
    {
        ".compound": "ChainedScheduler ReduceLROnPlateau SequentialLR",
        ".cycles": "CosineAnnealingWarmRestarts CyclicLR OneCycleLR",
        ".scheduler": """
            ConstantLR CosineAnnealingLR EPOCH_DEPRECATION_WARNING ExponentialLR LambdaLR LinearLR LRScheduler
            MultiplicativeLR MultiStepLR PolynomialLR StepLR _LRScheduler
        """,
    },
)

_moved.join(__name__)
