"""The functions that make tensors of no others, and take a device."""

from __future__ import annotations

import redispatch as rd
from redispatch.dispatch import OPERATORS

_NAMES = {
    op._opname: None
    for op in OPERATORS.values()
    if op.namespace == "aten" and any(one.name == "device" for one in op.schema.arguments)
    if not op.schema.tensor_positions and not op.schema.tensor_list_positions
}

tensor_factory_functions = (*(getattr(rd, name) for name in _NAMES if hasattr(rd, name)), rd.tensor)
