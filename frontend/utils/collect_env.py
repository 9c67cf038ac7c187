"""Collects the environment for a bug report: `python -m redispatch.utils.collect_env`.

Versions of the library, of Python and of the packages below it, the system, the processor and the settings that change
what runs. Nothing is asked of the network, and no path or user name is told.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from typing import NamedTuple

import redispatch

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "ml_dtypes")
SETTINGS = "REDISPATCH_"  # environment variables that begin so are told


class SystemEnv(NamedTuple):
    """The facts, each as text. `torch_version`: the version of this library, by the name that programs know it by."""

    torch_version: str
    python_version: str
    python_platform: str
    os: str
    cpu: str
    threads: str
    packages: dict[str, str]
    settings: dict[str, str]


def get_env_info() -> SystemEnv:
    """The facts about this process."""
    return SystemEnv(
        torch_version=redispatch.__version__,
        python_version=f"{platform.python_version()} ({platform.python_implementation()}, {word()} bit)",
        python_platform=platform.platform(),
        os=platform.system(),
        cpu=processor(),
        threads=f"{redispatch.get_num_threads()} of {os.cpu_count()} processors",
        packages={name: version_of(name) for name in PACKAGES},
        settings={name: value for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS)},
    )


def word() -> int:
    """Returns the number of bits of an address."""
    return sys.maxsize.bit_length() + 1


def version_of(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def processor() -> str:
    """The name of the processor, where the system tells it."""
    try:
        with open("/proc/cpuinfo") as facts:
            names = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def pretty_str(env: SystemEnv) -> str:
    """The facts as lines."""
    lines = [
        f"PyTorch version: redispatch {env.torch_version}, which stands in for it",
        f"Python version: {env.python_version}",
        f"Python platform: {env.python_platform}",
        f"OS: {env.os}",
        f"CPU: {env.cpu}",
        f"Threads: {env.threads}",
        "",
        "Versions of relevant libraries:",
        *(f"[pip3] {name}=={version}" for name, version in env.packages.items()),
    ]
    if env.settings:
        lines += ["", "Settings:", *(f"{name}={value}" for name, value in env.settings.items())]
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """The facts about this process, as lines for a bug report."""
    return pretty_str(get_env_info())


def main() -> None:
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
