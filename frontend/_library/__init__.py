"""PyTorch's private package behind `library` (`torch._library`): what writers of custom operators import from it."""

from .._names import late, take

__all__ = take(
    globals(), {".": "autograd infer_schema simple_registry utils", "redispatch.library": "triton_op wrap_triton"}
)

_PLACES, __getattr__, __dir__ = late(globals(), {".": "custom_ops"})
