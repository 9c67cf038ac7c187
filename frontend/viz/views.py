"""Makes the pictures of traces and graphs. The makers are imported when one is asked for: few programs draw."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from redispatch.dispatch.inspection.trace import VIEWS

MAKERS = {
    "page": "viz.tables.page",
    "chrome": "viz.tables.chrome",
    "notebook": "viz.tables.tree",
    "step": "viz.slides.step",
    "graph": "fx.passes.graph_drawer.picture",
}


class Views:
    """A trace as a page, as Chrome's JSON, as a notebook's output, a step of it; a graph of operators as a picture."""

    def __getattr__(self, name: str) -> Any:
        if name not in MAKERS:
            raise AttributeError(name)
        module, _, maker = MAKERS[name].rpartition(".")
        return getattr(import_module(f"{__name__.partition('.')[0]}.{module}"), maker)


VIEWS.fill(Views())
