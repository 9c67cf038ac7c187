"""`redispatch.multiprocessing`: Python's module of that name. Tensors travel between processes as pickles do; `spawn`
runs a function in several."""

from multiprocessing import *  # noqa: F403  # all that it has, as in PyTorch

from . import reductions as reductions
from .spawn import ProcessContext as ProcessContext
from .spawn import ProcessExitedException as ProcessExitedException
from .spawn import ProcessRaisedException as ProcessRaisedException
from .spawn import spawn as spawn
from .spawn import start_processes as start_processes


def get_sharing_strategy() -> str:
    """Returns how storages that are shared travel: through the file system."""
    return "file_system"


def get_all_sharing_strategies() -> set[str]:
    return {"file_system"}


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses how storages that are shared travel. AssertionError for another way than the only one."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {get_all_sharing_strategies()}"
        )
