"""Python's garbage collector, paused while this library is imported.

Importing makes many objects, which all stay. To look through them again and again would be a tenth of the import's
time. The root's first import pauses it, its last line calls `resume`.
"""

import gc

_was_on = gc.isenabled()
gc.disable()


def resume() -> None:
    """Has Python look for garbage again, if it did before."""
    if _was_on:
        gc.enable()
