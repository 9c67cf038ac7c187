"""Every example in a docstring of the library runs, and gives what it says.

Not by pytest's `--doctest-modules`, which would import files under other names than users do (docs/decisions/0001).
"""

import doctest
import importlib
import pkgutil

from redispatch.dispatch.config import config

from .registries import Snapshot

AT_LEAST = 40  # docstrings with examples; raise it when there are more

ROOMS = ["redispatch", *(f"redispatch.{room}" for room in ("dispatch", "kernels", "modes", "subclasses"))]


def modules():
    """All there are: the rooms, which lie beside the package's own folder, and what is in them."""
    for name in ROOMS:
        room = importlib.import_module(name)
        yield room
        for module in pkgutil.walk_packages(room.__path__, f"{name}."):
            yield importlib.import_module(module.name)


def test_the_examples_in_docstrings_give_what_they_say():
    every = [*modules()]
    wrong, shown, former, before = [], set(), config.specialize, Snapshot()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for module in every:
        for example in doctest.DocTestFinder().find(module):
            if not example.examples:
                continue
            try:
                runner.run(example, out=wrong.append, clear_globs=False)
            finally:
                if config.specialize != former:
                    config.specialize = former
                before.restore()  # here: the fixture undoes nothing where modules were imported
            shown.add(example.name)
    assert not wrong, "".join(wrong)
    assert runner.summarize(verbose=False).attempted > 2 * AT_LEAST
    assert len(shown) >= AT_LEAST, f"there are {len(shown)} docstrings with examples: {', '.join(sorted(shown))}"
