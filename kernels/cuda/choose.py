"""The choice of a driver, by REDISPATCH_CUDA: an NVIDIA card, the simulator, the simulator with delays, or none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import util
from typing import Any

from .compiler import INSTALL
from .driver import TAPES, Dim, Driver, Start, written_down

_chosen: Driver | None = None
_asked: str | None = None  # what REDISPATCH_CUDA was when a driver was looked for; None before


def driver() -> Driver | None:
    """The driver of this process, found when it is first asked for; None where there is no GPU.

    Where there was none, it is looked for again once REDISPATCH_CUDA is another word: a notebook may set it late.
    """
    global _chosen, _asked
    if _asked is None or (_chosen is None and _asked != wanted()):
        _chosen, _asked = found(), wanted()
    return _chosen


def use(chosen: Driver | None) -> tuple[Driver | None, str | None]:
    """Makes this driver the process's; returns what `restore` takes."""
    global _chosen, _asked
    former = _chosen, _asked
    _chosen, _asked = chosen, wanted()
    return former


def restore(former: tuple[Driver | None, str | None]) -> None:
    """Makes the driver the process's that was it before `use`."""
    global _chosen, _asked
    _chosen, _asked = former


def wanted() -> str:
    """Reads REDISPATCH_CUDA. ValueError where it is none of the words that it may be."""
    word = os.environ.get("REDISPATCH_CUDA", "")
    if word not in ("", "sim", "late", "null"):
        raise ValueError(f"REDISPATCH_CUDA is {word!r}; it may be sim, late, null, or unset for the machine's own GPUs")
    return word


def found() -> Driver | None:
    word = wanted()
    found = driver_for(word)
    if found is not None and os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        wait_for_launches(found)
    return found


def wait_for_launches(driver: Driver) -> None:
    """Has a driver wait for each kernel, so that what goes wrong in one is raised by the operator which launched it."""
    launched = driver.prepared

    def prepared(kernel: Any, grid: Dim, block: Dim) -> Start:
        start = launched(kernel, grid, block)

        def run(arguments: tuple[int | float, ...], stream: int) -> None:
            if TAPES and written_down(run, arguments, stream):
                return
            start(arguments, stream)
            if not driver.captured(stream):
                driver.synchronize(max(-stream, 0), stream)

        return run

    def launch(kernel: Any, grid: Dim, block: Dim, arguments: Sequence[int | float], stream: int = 0) -> None:
        prepared(kernel, grid, block)(tuple(arguments), stream)

    driver.prepared, driver.launch = prepared, launch  # type: ignore[method-assign]  # wrapped on purpose


def driver_for(word: str) -> Driver | None:
    """Makes the driver that REDISPATCH_CUDA names."""
    if word == "null":
        from .null_driver import NullDriver  # here, as the next one: both are drivers themselves

        return NullDriver()
    if word == "sim":
        from .simulated_driver import SimulatedDriver  # here, because an import of the library needs no simulator

        return SimulatedDriver()
    if word == "late":
        from .simulated_driver import LateDriver  # here, as the former

        return LateDriver()
    if util.find_spec("cuda") is None or util.find_spec("cuda.core") is None:
        return None
    from .cuda_driver import cards  # here, because few machines have it

    return cards()


def why_not() -> str:
    """Says why there is no device."""
    return (
        f"there is no CUDA device. On a machine with an NVIDIA GPU, {INSTALL}; REDISPATCH_CUDA=sim in the environment "
        "gives a simulated one anywhere"
    )
