"""Optimizers: SGD, Adam and AdamW, and schedules of their learning rates.

Read in this order: optimizer, sgd, adam, adamw, lr_scheduler.
"""

from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["Adam", "AdamW", "Optimizer", "SGD", "lr_scheduler"]
