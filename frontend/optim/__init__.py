"""Optimizers, and schedules of their learning rates.

Read in this order: optimizer, sgd, adam, then any; lr_scheduler.
"""

from redispatch import _moved, _names

from . import lr_scheduler, swa_utils

__all__ = _names.take(
    globals(),
    {
        ".adagrad": "Adadelta Adafactor Adagrad RMSprop Rprop",
        ".adam": "Adam Adamax AdamW NAdam RAdam SparseAdam",
        ".lbfgs": "LBFGS",
        ".optimizer": "Optimizer",
        ".sgd": "ASGD SGD Muon",
    },
)
__all__ += ["lr_scheduler", "swa_utils"]

_moved.join(__name__)
