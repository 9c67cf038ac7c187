"""Stages: the graphs that a program becomes, one after another, as text, as differences, and as a page to step through.

    stages = stages_of(f, x, w)                # traced ahead, parted, and each part through all passes
    print(stages)                              # what each stage changed, as unified differences
    stages.html("stages.html")                 # the same, with pictures, on a page that needs no network

    run_passes(module, watch=(own := Stages()).add)     # of passes alone
    print(diff(before, after))                          # of two modules

A stage holds text and a picture, and no graph: graphs are changed in place. The page is frontend/viz/stages.html.
Read next: ../fx/passes/post_grad.py, ../fx/passes/graph_drawer.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, unified_diff
from functools import partial
from typing import Any

from redispatch.fx import GraphModule
from redispatch.fx.passes.graph_drawer import FxPicture, joint_picture, picture, text_of
from redispatch.fx.passes.post_grad import run_passes
from redispatch.fx.traceback import preserve_node_meta
from redispatch.viz.graph_picture import svg
from redispatch.viz.tables import stages_page

from .aot_autograd import aot_function
from .partitioners import min_cut_rematerialization_partition

__all__ = ["Stage", "Stages", "diff", "stages_of"]


@dataclass(frozen=True, slots=True)
class Stage:
    """A graph as it was: its name, its code with dtypes and shapes, its picture, and which stage it came from."""

    name: str
    text: str
    picture: FxPicture
    before: int | None


def diff(before: GraphModule | str, after: GraphModule | str, names: tuple[str, str] = ("before", "after")) -> str:
    """Returns the unified difference of two graphs, or of their texts; "" where they are the same."""
    old, new = ((one if isinstance(one, str) else text_of(one)).splitlines() for one in (before, after))
    return "\n".join(unified_diff(old, new, *names, lineterm=""))


class Stages(Sequence[Stage]):
    """The stages of graphs. What changes nothing is no stage, but is named in `unchanged`."""

    def __init__(self, title: str = "graphs") -> None:
        self.title = title
        self.stages: list[Stage] = []
        self.unchanged: list[str] = []

    def __len__(self) -> int:
        return len(self.stages)

    def __getitem__(self, index: Any) -> Any:
        return self.stages[index]

    def add(self, name: str, module: GraphModule, of: str = "", drawn: FxPicture | None = None) -> None:
        """Adds a graph as it is now. of: the graph that it is a stage of, where there are several."""
        name = f"{of}: {name}" if of else name
        former = [i for i, one in enumerate(self.stages) if one.name.partition(": ")[0] == of or not of]
        before, text = former[-1] if former else None, text_of(module)
        if before is not None and self.stages[before].text == text:
            self.unchanged.append(name)
        else:
            self.stages.append(Stage(name, text, drawn or picture(module), before))

    def of(self, name: str) -> Callable[[str, GraphModule], None]:
        """Returns `add` for one of several graphs, to be the `watch` of `run_passes`."""
        return partial(self.add, of=name)

    def difference(self, index: int) -> str:
        """Returns what a stage changed, as a unified difference; the whole text of a first one."""
        stage = self.stages[index]
        if stage.before is None:
            return f"+++ {stage.name}\n{stage.text}"
        return diff(self.stages[stage.before].text, stage.text, (self.stages[stage.before].name, stage.name))

    def __str__(self) -> str:
        return "\n\n".join(map(self.difference, range(len(self.stages))))

    def __repr__(self) -> str:
        return f"<{self.title}: {', '.join(stage.name for stage in self.stages)}>"

    def html(self, path: Any = None) -> str:
        """Returns the page, and writes it to a file where one is named."""
        rows = [
            {
                "name": one.name,
                "caption": one.picture.graph.caption,
                "lines": self.marked(one),
                "svg": svg(one.picture.graph),
            }
            for one in self.stages
        ]
        return stages_page(self.title, rows, self.unchanged, path)

    def marked(self, stage: Stage) -> list[tuple[str, str]]:
        """Returns the lines of a stage and those that it took away, each with "+", "-" or " "."""
        new = stage.text.splitlines()
        old = new if stage.before is None else self.stages[stage.before].text.splitlines()
        found: list[tuple[str, str]] = []
        for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                found += [(" ", line) for line in new[c:d]]
            else:
                found += [("-", line) for line in old[a:b]] + [("+", line) for line in new[c:d]]
        return found


def stages_of(
    function: Callable[..., Any],
    *args: Any,
    partition_fn: Callable[..., Any] = min_cut_rematerialization_partition,
    title: str = "",
) -> Stages:
    """Returns the stages of a function: its joint graph with the cut, and forward and backward through all passes.

    The function is called once, with these arguments. What needs no gradient has a forward alone.
    """
    stages = Stages(title or getattr(function, "__name__", "graphs"))

    def parted(joint: GraphModule, inputs: Any, *, num_fwd_outputs: int) -> Any:
        forward, backward = partition_fn(joint, inputs, num_fwd_outputs=num_fwd_outputs)
        stages.add("joint graph", joint, drawn=joint_picture(joint, forward, backward, num_fwd_outputs))
        return forward, backward

    def passed(name: str) -> Callable[..., Any]:
        return lambda module, inputs: run_passes(module, watch=stages.of(name))

    with preserve_node_meta():
        aot_function(function, passed("forward"), passed("backward"), partition_fn=parted)(*args)
    return stages
