"""Python's garbage collector, paused while this library is imported, and then led past what the import made.

Importing makes 140,000 objects, which all stay. To look through them again and again would be a tenth of the import's
time, and to search them once more as Python ends a third of a second, more than half of what a short program takes.
The root's first import pauses the collector, its last line calls `resume`.
"""

import gc

OWN = 50_000  # objects; Python and numpy have 20,000

_was_on = gc.isenabled()
gc.disable()
_fresh = not gc.get_freeze_count() and len(gc.get_objects()) < OWN


def resume() -> None:
    """Has Python look for garbage again, if it did before, among what is made from now on.

    All that there is has come to stay, and joins the permanent generation; `gc.unfreeze()` has it searched again. In a
    program that had much of its own before, which may be garbage one day, it joins the oldest generation, unseen:
    otherwise the next object made would have the whole of it searched.
    """
    if not _was_on:
        return
    if not gc.get_freeze_count():  # else a program has frozen objects of its own, which must stay so
        gc.freeze()
        if not _fresh:
            gc.unfreeze()
    gc.enable()
