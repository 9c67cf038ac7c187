"""The programs of tests/programs print on torch what their files say."""

import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent.parent / "programs"
different = []
for expected in sorted(PROGRAMS.glob("*.txt")):
    run = [sys.executable, "-W", "ignore", str(expected.with_suffix(".py"))]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600)
    if done.stdout != expected.read_text():
        different.append(expected.stem)
        print(f"{expected.stem} prints otherwise on torch:\n{done.stdout}\n{done.stderr[-1000:]}")
print(f"{len(different)} of {len(list(PROGRAMS.glob('*.txt')))} programs differ")
sys.exit(bool(different))
