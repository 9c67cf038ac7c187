"""Made by `python -m redispatch.stubs`."""

from .compound import ChainedScheduler as ChainedScheduler, ReduceLROnPlateau as ReduceLROnPlateau, SequentialLR as SequentialLR
from .cycles import CosineAnnealingWarmRestarts as CosineAnnealingWarmRestarts, CyclicLR as CyclicLR, OneCycleLR as OneCycleLR
from .scheduler import ConstantLR as ConstantLR, CosineAnnealingLR as CosineAnnealingLR, EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING, ExponentialLR as ExponentialLR, LambdaLR as LambdaLR, LinearLR as LinearLR, LRScheduler as LRScheduler, MultiplicativeLR as MultiplicativeLR, MultiStepLR as MultiStepLR, PolynomialLR as PolynomialLR, StepLR as StepLR, _LRScheduler as _LRScheduler

