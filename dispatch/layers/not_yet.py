"""Keys of the reference's order at which no layer of this library does anything yet: calls pass them at no cost.

Nothing sets their bits today. A layer that comes to be takes its key out of this list.
"""

from ..places import place_of
from .layer import skipped


def _pass() -> None:
    """Where `explain` says these fallthroughs come from."""


skipped(
    place_of(_pass),
    "PythonDispatcher",
    "FuncTorchVmapMode",
    "BatchedNestedTensor",
    "VmapMode",
    "Batched",
    "Tracer",
)
