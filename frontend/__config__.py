"""How the library was built, for bug reports: `__config__.show()`. Nothing is built; these are versions."""

from __future__ import annotations

from .utils.collect_env import get_env_info

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Returns what the library runs on, a line for each fact."""
    facts = get_env_info()
    lines = [f"redispatch {facts.torch_version}: Python, compiled by LLVM as it runs"]
    lines += [f"Python {facts.python_version}", facts.os, facts.cpu]
    lines += [f"{name} {version}" for name, version in facts.packages.items()]
    return "\n  - ".join(lines) + "\n"


def parallel_info() -> str:
    """Returns how many threads compute."""
    return f"Threads of kernels: {get_env_info().threads}\n"


def _cxx_flags() -> str:
    """Returns the flags of the C++ compiler: there is no C++."""
    return ""
