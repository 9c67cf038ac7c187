"""Which dtype a computation has: the public questions, which function modes and subclasses see like any other call.

The rules are in tensor/promotion.py and tensor/dtypes.py, where the layers ask them directly.
"""

from __future__ import annotations

from redispatch.tensor import promotion

from .overridable import overridable_function

result_type = overridable_function(promotion.result_type)
promote_types = overridable_function(promotion.promote_types)
can_cast = overridable_function(promotion.can_cast)
