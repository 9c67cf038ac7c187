"""Made by `python -m redispatch.stubs`."""

from . import lr_scheduler as lr_scheduler, swa_utils as swa_utils
from .adagrad import Adadelta as Adadelta, Adafactor as Adafactor, Adagrad as Adagrad, RMSprop as RMSprop, Rprop as Rprop
from .adam import Adam as Adam, Adamax as Adamax, AdamW as AdamW, NAdam as NAdam, RAdam as RAdam, SparseAdam as SparseAdam
from .lbfgs import LBFGS as LBFGS
from .optimizer import Optimizer as Optimizer
from .sgd import ASGD as ASGD, SGD as SGD, Muon as Muon

