"""Passes over graphs."""

from ..._names import late

_PLACES, __getattr__, __dir__ = late(
    globals(), {".": "config fake_tensor_prop graph_drawer infra matching post_grad reinplace shape_prop"}
)
