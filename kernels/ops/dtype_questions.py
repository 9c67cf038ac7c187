"""Which dtype a computation has: the public questions, which function modes and subclasses see like any other call.

The rules are in dispatch/tensor/promotion.py and dispatch/tensor/dtypes.py, where the layers ask them directly.
"""

from __future__ import annotations

from redispatch.dispatch.tensor import promotion

from ..declare.overridable import builtin_function

result_type = builtin_function(promotion.result_type)
promote_types = builtin_function(promotion.promote_types)
can_cast = builtin_function(promotion.can_cast)
