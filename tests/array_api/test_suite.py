"""`make array-api` runs the standard's own suite, for whoever has it; here, what can be known without it."""

import re
import subprocess
from pathlib import Path

from redispatch import array_api

HERE = Path(__file__).parent
SKIPS = (HERE / "skips.txt").read_text()
IDS = [line for line in SKIPS.splitlines() if line and not line.startswith("#")]


def test_without_the_path_of_the_suite_make_says_what_to_do():
    command = ["make", "array-api", "ARRAY_API_TESTS=nowhere"]
    made = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True)
    assert made.returncode and "make array-api ARRAY_API_TESTS=../array-api-tests" in made.stderr


def test_every_group_of_tests_left_out_has_a_reason():
    for group in SKIPS.strip().split("\n\n"):
        assert group.startswith("# ")
    assert len(IDS) == len(set(IDS))


def test_what_is_left_out_is_a_function_or_an_operator():
    for one in IDS:
        name = re.search(r"\[(\w+)\(", one)[1]
        assert hasattr(array_api, name) or name.startswith("__"), one
