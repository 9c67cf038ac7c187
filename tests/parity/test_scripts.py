"""The comparisons with real torch that are programs of their own, each run as one test of `make parity`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "torch", reason="compares with real torch; `make parity` installs it into an environment of its own"
)

HERE = Path(__file__).parent
SCRIPTS = sorted(p.name for p in HERE.glob("*.py") if not p.name.startswith("test_") and p.name != "loading.py")


@pytest.mark.parametrize("script", SCRIPTS)
def test_agrees_with_torch(script):
    done = subprocess.run(
        [sys.executable, str(HERE / script)], capture_output=True, text=True, timeout=600, env=os.environ.copy()
    )
    print(done.stdout[-4000:])
    assert done.returncode == 0, f"{script} found differences:\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
