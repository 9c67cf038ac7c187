"""Graphs whose tensors are on a CUDA device: the same steps, of which each nest of loops is one kernel.

Products of matrices, and whatever else is no loop, are calls of their operators. A kernel is launched by Python, unless
the function is recorded (`recorded.py`): then a call replays what the card was told once.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

from redispatch.dispatch import OpOverload
from redispatch.dispatch.tensor import Tensor
from redispatch.kernels.cuda import nvptx
from redispatch.kernels.cuda.compiler import ptx
from redispatch.kernels.cuda.elementwise import VECTOR
from redispatch.kernels.cuda.nests import GridNest, is_known
from redispatch.kernels.cuda.reduce import LARGE
from redispatch.kernels.cuda.runtime.async_errors import late_errors
from redispatch.kernels.cuda.runtime.operands import block_of, located, stream_for

from ..fx.node import Node
from .compile_fx import HELPERS, CompiledFxGraph
from .decompositions import is_item
from .lowering import Call, Lowering, Nesting, Step, Strides
from .recorded import hindrance, recorded

MOST_ACCUMULATORS = 4  # of a block's threads in shared memory
TARGET = "sm_80"  # for which kernels are shown where no device is


class CUDALowering(Lowering):
    """The steps of a graph on a device."""

    device, made = "cuda", GridNest
    longest = LARGE  # a block reduces it alone; the operator's own kernel cuts longer ones among many
    precise = 1 << 62  # accumulators are partial sums of a tree, in the type in which a GPU accumulates

    def is_quick(self, step: Step) -> bool:
        return False

    def knows(self, body: Callable, compute: str, takes: Sequence[str]) -> bool:
        """Whether a scalar function is translated for a GPU, as for the CPU."""
        return super().knows(body, compute, takes) and is_known(body, compute, tuple(takes))

    def shares(self, nest: Nesting, steps: Strides = ()) -> bool:
        """Whether a nest reduces the same way: a block has rows, or columns."""
        if not steps:
            return not nest.accumulates
        kept = [bool(step) for step in steps]
        same = all([bool(step) for step in known] == kept for known in nest.accumulates.values())
        return not nest.columns and same and len(nest.accumulates) < MOST_ACCUMULATORS


class CompiledForCUDA(CompiledFxGraph):
    """A graph's function on a device.

    not_recorded: why it is no graph of CUDA, "" if it is one.
    """

    steps_of = CUDALowering
    nests: Any  # each a `GridNest`

    def __init__(self, module: Any, examples: Sequence[Any], cudagraphs: bool = False) -> None:
        self.device = next(x.device for x in examples if isinstance(x, Tensor) and x.is_cuda)
        super().__init__(module, examples)
        self.known |= {"located": located, "stream_for": stream_for, "error_words": self.error_words}
        self.driver: Any = None  # whose kernels `run` launches
        self.not_recorded = hindrance(self.graph.nodes) if cudagraphs else "nobody asked for that"

    def __call__(self, *args: Any) -> Any:
        """Returns what the graph does of these inputs."""
        if len(args) != len(self.metadata) or not self.fits(args):
            return self.interpreter.run(*args)
        driver = next(block_of(x).driver for x in args if isinstance(x, Tensor) and x.is_cuda)
        if self.run is None or self.driver is not driver:
            self.driver = driver
            self.run = self.made() if self.not_recorded else recorded(driver, self.made())
        return self.run(*args)

    def has_memory(self, x: Tensor) -> bool:
        """Whether a tensor has memory on the device, or as a number on the CPU."""
        if not x.is_cuda:
            return super().has_memory(x)
        store: Any = x._store
        return store is not None and store.block is not None

    def error_words(self, x: Tensor) -> int:
        """The address at which a kernel reports an index beyond its array."""
        return late_errors(self.driver).address(x._device.index or 0)

    # The text ---------------------------------------------------------------------------------------------------------

    def nest_lines(self, step: Nesting) -> list[str]:
        """Launches a nest's kernel."""
        nest = self.nests[step]
        first = nest.outputs[0][0].name
        given = [f"located({array.name})" for array in nest.arrays]
        if nest.picks:
            given += [
                f"error_words({first})",
                *(f"pick_{pick.number}, {self.lowering.picks[pick.number - 1][1]}" for pick in nest.picks),
            ]
        return [f"    {nest.name}(({', '.join(given)},), stream_for({first}))"]

    def pick_name(self, number: int) -> str:
        """The words for a node that reads at an index, for the error's message."""
        node, _, _ = self.lowering.picks[number - 1]
        where = (node.meta.get("stack_trace") or "").strip()
        return f"{node.name} = {node.target}" + (f"\n{where}\n" if where else "")

    def made(self) -> Callable[..., Any]:
        """The function; its kernels are compiled here, or loaded from disk."""
        errors = late_errors(self.driver)
        numbers = {f"pick_{k + 1}": errors.number(self.pick_name(k + 1)) for k in range(len(self.lowering.picks))}
        namespace = HELPERS | self.known | numbers | {nest.name: self.started(nest) for nest in self.nests.values()}
        name = f"<redispatch graph {id(self):x}>"
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        exec(compile(self.text, name, "exec"), namespace)
        return namespace["run"]

    def started(self, nest: GridNest) -> Callable[..., None]:
        """The launcher of a nest's kernel: `start(arguments, stream)`."""
        launch, wide = nest.launch(), nest.widened()
        if launch is None:
            return lambda arguments, stream: None
        start = launch.on(self.driver)
        if wide is None:
            return start
        widely, count = wide.on(self.driver), len(nest.arrays)

        def started(arguments: tuple[int, ...], stream: int) -> None:
            low = 0
            for address in arguments[:count]:
                low |= address
            (start if low % VECTOR else widely)(arguments, stream)

        return started

    # Seen -------------------------------------------------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The compute capability of the card, or one of the oldest that is served."""
        return TARGET if self.driver is None else self.driver.target

    def machine_code(self, nest: Any) -> tuple[str, str]:
        """A kernel in LLVM's language, before it is optimised, and its PTX."""
        source = (nest.wider or nest).source_on_device()
        return nvptx.llvm_text(source.program(), source.signature), ptx(source, self.target)

    def llvm(self) -> str:
        """The kernels in LLVM's language, before it optimises them."""
        return "\n".join(self.machine_code(nest)[0] for nest in self.nests.values() if nest.turns)

    def assembly(self) -> str:
        """The PTX of each kernel."""
        return "\n".join(self.machine_code(nest)[1] for nest in self.nests.values() if nest.turns)

    def calls(self) -> list[str]:
        """The operators that are called as their own kernels, by the names of their nodes; views compute nothing."""
        nodes = [step.node for step in self.steps if isinstance(step, Call)]
        return [f"{node.name} = {node.target}" for node in nodes if computes(node)]


def computes(node: Node) -> bool:
    """Whether a call has a kernel run: neither a view nor a choice among results."""
    return not is_item(node) and not (isinstance(node.target, OpOverload) and node.target.schema.is_view)
