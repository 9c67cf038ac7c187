"""factory_kwargs: which of a layer's options say how its parameters are to be made.

class MyLayer(nn.Module):
    def __init__(self, size, **kwargs):
        super().__init__()
        self.weight = nn.Parameter(redispatch.empty(size, **nn.factory_kwargs(kwargs)))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES = {"device", "dtype", "memory_format"}


def factory_kwargs(kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options for a factory: device, dtype and memory_format, and those in a dictionary called `factory_kwargs`.

    Errors: TypeError for other options, and for one that is given both ways.
    """
    if kwargs is None:
        return {}
    unknown = kwargs.keys() - NAMES - {"factory_kwargs"}
    if unknown:
        raise TypeError(f"unexpected kwargs {unknown}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in NAMES & kwargs.keys():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = kwargs[name]
    return found
