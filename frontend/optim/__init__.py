"""Optimizers, and schedules of their learning rates.

Read in this order: optimizer, sgd, adam, then any; lr_scheduler.
"""

from redispatch import _moved

from . import lr_scheduler, swa_utils
from .adagrad import Adadelta, Adafactor, Adagrad, RMSprop, Rprop
from .adam import Adam, Adamax, AdamW, NAdam, RAdam, SparseAdam
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import ASGD, SGD, Muon

__all__ = [
    "ASGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "LBFGS",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SGD",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
]

_moved.join(__name__)
