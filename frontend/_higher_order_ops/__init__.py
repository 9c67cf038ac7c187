"""Higher-order operators: control flow and regions, as operators that take functions.

They are transparent: run eagerly they are the Python loop or branch that they stand for, recorded by autograd, seen by
modes and transforms as what their bodies call. A mode that wants the operator itself sets
`supports_higher_order_operators`, or registers a rule by `py_impl`.

Read next: cond.py, the shortest with a rule of its own.
"""

from .associative_scan import associative_scan
from .auto_functionalize import auto_functionalized
from .cond import cond
from .map import map
from .out_dtype import out_dtype
from .scan import scan
from .while_loop import while_loop
from .wrap import (
    tag_activation_checkpoint,
    wrap,
    wrap_activation_checkpoint,
    wrap_with_autocast,
    wrap_with_set_grad_enabled,
)

__all__ = [
    "associative_scan",
    "auto_functionalized",
    "cond",
    "map",
    "out_dtype",
    "scan",
    "tag_activation_checkpoint",
    "while_loop",
    "wrap",
    "wrap_activation_checkpoint",
    "wrap_with_autocast",
    "wrap_with_set_grad_enabled",
]
