"""ModuleTracker: which modules run at this moment, forward or backward, by the names that `state_dict` has for them.

    with ModuleTracker() as tracker:
        model(x).sum().backward()      # any hook, mode or function called in here may read `tracker.parents`

Forward is told by hooks of all modules. Backward enters a module when the gradients of all its results are there, and
leaves it when those of its inputs are; a module none of whose inputs needs a gradient is left when the pass ends.
Read next: flop_counter.py, which counts by module.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import redispatch as rd
from redispatch.dispatch import pytree
from redispatch.dispatch.autograd.engine import CURRENT_PASS, current_task
from redispatch.dispatch.autograd.graph import register_multi_grad_hook
from redispatch.dispatch.autograd.hooks import WATCH
from redispatch.nn.hooks import register_module_forward_hook, register_module_forward_pre_hook

GLOBAL = "Global"


class ModuleTracker:
    """A region in which `parents` has the names of the modules that run, and "Global".

    A module that is called first is named by its class; one inside another by the path of attributes from there, such
    as "Net.layers.0". A module that is called within itself is left when its outermost call ends. `is_bw`: whether a
    backward pass runs in this thread.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {GLOBAL}
        self._names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._open: Counter[str] = Counter()  # how many calls of each name run
        self._handles: list[Any] = []

    @property
    def is_bw(self) -> bool:
        return CURRENT_PASS.get() is not None

    def __enter__(self) -> ModuleTracker:
        WATCH.on = True  # so that passes say that they run
        self._handles = [
            register_module_forward_pre_hook(self._before_forward),
            # Also where forward raises: what comes after that is not inside the module.
            register_module_forward_hook(self._after_forward, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        while self._handles:
            self._handles.pop().remove()
        self._leave_all()

    def _before_forward(self, module: Any, args: Any) -> None:
        name = self._name_of(module)
        self._enter(name)
        self._at_gradients(args, partial(self._leave, name))

    def _after_forward(self, module: Any, args: Any, result: Any) -> None:
        name = self._name_of(module)
        self._leave(name)
        self._at_gradients(result, partial(self._enter_backward, name))

    def _at_gradients(self, value: Any, call: Callable[[], None]) -> None:
        tensors = [x for x in pytree.tree_leaves(value) if isinstance(x, rd.Tensor) and x.requires_grad]
        if tensors:
            self._handles.append(register_multi_grad_hook(tensors, lambda gradients: call()))

    def _name_of(self, module: Any) -> str:
        """The module's name; those inside one that is seen for the first time are named after it."""
        if module not in self._names:
            self._name_all(module, type(module).__name__)
        return self._names[module]

    def _name_all(self, module: Any, name: str) -> None:
        self._names[module] = name
        for child, inner in module.named_children():
            self._name_all(inner, f"{name}.{child}")  # also one that was called alone before

    def _enter(self, name: str) -> None:
        self._open[name] += 1
        self.parents.add(name)

    def _enter_backward(self, name: str) -> None:
        task = current_task()
        if task is not None and self._leave_all not in task.at_end:
            task.at_end.append(self._leave_all)
        self._enter(name)

    def _leave(self, name: str) -> None:
        self._open[name] -= 1
        if self._open[name] <= 0:
            del self._open[name]
            self.parents.discard(name)

    def _leave_all(self) -> None:
        self._open.clear()
        self.parents = {GLOBAL}
