"""PyTorch's module path of frontend/testing/invocations.py."""

from ..invocations import FunctionInfo as OpInfo
from ..invocations import op_db
from ..op_info import SampleInput

__all__ = ["OpInfo", "SampleInput", "op_db"]
