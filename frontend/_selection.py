"""The list of operators under which this process imports the library, if there is one.

The environment variable REDISPATCH_OPS names the list; a wheel that was cut from one has it beside this file. Kernels
of operators that it leaves out are not registered, and files of these not opened: a call says that the operator was
omitted. selective.py writes such lists. Read next: _postponed.py, which does that.
"""

from __future__ import annotations

import os
import sys

LIST = "selection.txt"  # in a wheel that was cut from it


def chosen() -> str:
    """The path of the list; empty where all operators are wanted."""
    beside = os.path.join(os.path.dirname(__file__), LIST)
    return os.environ.get("REDISPATCH_OPS", "") or (beside if os.path.exists(beside) else "")


if _path := chosen():
    from ._postponed import Finder

    sys.meta_path.insert(0, Finder(_path))
