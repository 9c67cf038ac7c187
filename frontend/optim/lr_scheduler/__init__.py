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
            ConstantLR CosineAnnealingLR ExponentialLR LambdaLR LinearLR LRScheduler MultiplicativeLR MultiStepLR
            PolynomialLR StepLR
        """,
    },
)

_moved.join(__name__)
