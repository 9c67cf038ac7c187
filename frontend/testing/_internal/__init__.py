"""PyTorch's private names for what its own tests are made of, as programs import them."""

from ..._names import late

_PLACES, __getattr__, __dir__ = late(
    globals(), {".": "common_methods_invocations common_utils logging_tensor two_tensor"}
)
