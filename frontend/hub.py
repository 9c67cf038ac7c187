"""`torch.hub`: the folder where downloads lie, and functions that would fetch something, which say that none does."""

from __future__ import annotations

import os
import re
from typing import Any
from urllib.parse import urlparse as urlparse

from ._absent import refusing

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # in a file's name, the beginning of its checksum

_REASON = "nothing is fetched from the network; read a file with redispatch.load"
download_url_to_file, help, list, load, load_state_dict_from_url = (
    refusing(f"hub.{name}", _REASON)
    for name in ("download_url_to_file", "help", "list", "load", "load_state_dict_from_url")
)
load_url = load_state_dict_from_url  # its name in utils.model_zoo
_dir: str | None = None


def _get_torch_home() -> str:
    """Returns the folder of caches: `$TORCH_HOME`, else `torch` in `$XDG_CACHE_HOME` or `~/.cache`."""
    cache = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    return os.path.expanduser(os.environ.get("TORCH_HOME", os.path.join(cache, "torch")))


def get_dir() -> str:
    """Returns the folder of downloads: that of `set_dir`, else `hub` in the folder of caches."""
    return os.path.join(_get_torch_home(), "hub") if _dir is None else _dir


def set_dir(d: str | os.PathLike[str]) -> None:
    """Sets the folder of downloads."""
    global _dir
    _dir = os.path.expanduser(d)


def __getattr__(name: str) -> Any:
    """Returns `tqdm`, PyTorch's bar of progress, of the package of that name."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tqdm import tqdm  # here, because few have it

    return tqdm
