"""Types by which TorchScript reads signatures: those of `typing`, and lists for which one number may stand."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035  # under these names programs import them

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union"] + [f"BroadcastingList{n}" for n in range(1, 7)]

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list
BroadcastingList4 = BroadcastingList5 = BroadcastingList6 = list
