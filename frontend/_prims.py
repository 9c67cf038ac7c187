"""PyTorch's `torch._prims`: what of it programs use, the questions of `_prims_common` under the name `utils`."""

from . import _prims_common as utils
from ._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, RETURN_TYPE

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "RETURN_TYPE", "utils"]
