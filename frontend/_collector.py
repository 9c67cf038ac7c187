"""Python's garbage collector, paused while this library is imported.

Importing makes many objects, which all stay. To look through them again and again would be a tenth of the import's
time. The root's first import pauses it, its last line calls `resume`.
"""

import gc

_was_on = gc.isenabled()
gc.disable()


def resume() -> None:
    """Has Python look for garbage again, if it did before, among what is made from now on.

    All that there is joins the oldest generation unseen, as it has come to stay. Otherwise the next object made would
    have the whole of it searched, which takes another tenth.
    """
    if not _was_on:
        return
    if not gc.get_freeze_count():  # else a program has frozen objects of its own, which must stay so
        gc.freeze()
        gc.unfreeze()
    gc.enable()
