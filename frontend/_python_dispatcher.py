"""PyTorch's `torch._python_dispatcher`: who answers at which key, for kernels of one's choice.

dispatcher = PythonDispatcher()
dispatcher.register(["CPU", "XLA", "CompositeImplicitAutograd"])
print(dispatcher.dispatchTable())
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from redispatch import _C

__all__ = ["PythonDispatcher"]


class PythonDispatcher:
    """An operator without a kernel, to which `register` gives those of some keys, each called `fn_<key>`.

    It has a key of each kind: a backend with kernels of its own for autograd, one without, and backends of others.
    """

    namespace = "__test__"
    name = "foo"
    runtime_keys = ["CPU", "AutogradCPU", "FPGA", "AutogradOther", "XLA", "AutogradXLA", "Lazy", "AutogradLazy"]
    alias_keys = ["CompositeExplicitAutograd", "Autograd", "CompositeImplicitAutograd"]
    supported_keys = runtime_keys + alias_keys

    def __init__(self) -> None:
        _C._dispatch_check_invariants(self.name)
        self.ref = _C._dispatch_library("FRAGMENT", self.namespace, "")
        self.ref.def_("foo(Tensor x) -> Tensor")

    def keys(self) -> list[str]:
        """The keys that kernels can be registered at."""
        return self.supported_keys

    def register(self, dispatchKeys: Iterable[str]) -> None:
        """Registers a kernel at each key. RuntimeError for a key twice, an unknown key, or both kinds of composite."""
        keys = list(dispatchKeys)
        if len(set(keys)) != len(keys):
            raise RuntimeError(f"Overridden is not allowed but found duplicates in {keys}.")
        if {"CompositeImplicitAutograd", "CompositeExplicitAutograd"} <= set(keys):
            raise RuntimeError(
                "Registration to both CompositeImplicitAutograd and CompositeExplicitAutograd is not allowed."
            )
        for key in keys:
            if key not in self.supported_keys:
                raise RuntimeError(f"{key} is not supported, please select a dispatch key in {self.supported_keys}.")
            self.ref.impl_t_t("foo", dispatch=key, debug="fn_" + key)

    def rawRegistrations(self) -> str:
        return _C._dispatch_dump(f"{self.namespace}::{self.name}")

    def rawDispatchTable(self) -> str:
        return _C._dispatch_dump_table(f"{self.namespace}::{self.name}")

    def registrations(self) -> str:
        """Lists the kernels at runtime and alias keys."""
        lines = (line.partition(": ") for line in self.rawRegistrations().splitlines())
        return _listed(
            "Registered Kernels",
            [(key, rest.split(" ")[0]) for key, _, rest in lines if key.split("[")[0] in self.supported_keys],
        )

    def dispatchTable(self) -> str:
        """Lists who answers at each runtime key."""
        lines = (line.partition(": ") for line in self.rawDispatchTable().splitlines())
        return _listed(
            "Computed Dispatch Table",
            [
                (key, re.sub(r"registered at .* (\[)", r"\1", rest))
                for key, _, rest in lines
                if key in self.runtime_keys
            ],
        )


def _listed(header: str, rows: Iterable[tuple[str, str]]) -> str:
    """Returns a table of keys and kernels."""
    lines = [f"{key:<15} {kernel}\n" for key, kernel in [("key", "kernel"), *rows]]
    return "".join([f"\n{header}\n", lines[0], "-" * 27 + "\n", *lines[1:]])
