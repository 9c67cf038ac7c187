"""Passes over graphs."""

from ..._names import late

_PLACES, __getattr__, __dir__ = late(globals(), {".": "fake_tensor_prop infra matching post_grad reinplace shape_prop"})
