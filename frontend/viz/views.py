"""Makes the pictures of traces. The makers are imported when one is asked for: few programs draw."""

from __future__ import annotations

from typing import Any

from redispatch.dispatch import Hop
from redispatch.dispatch.inspection.trace import VIEWS


class Views:
    """A trace as a page, as Chrome's JSON, and as a notebook's output."""

    def page(self, root: Hop) -> str:
        from .tables import page  # late: see above

        return page(root)

    def step(self, root: Hop, number: int | None) -> Any:
        from .slides import step  # late: see above

        return step(root, number)

    def chrome(self, root: Hop) -> str:
        from .tables import chrome  # late: see above

        return chrome(root)

    def notebook(self, root: Hop) -> str:
        from .tables import tree  # late: see above

        return tree(root)


VIEWS.fill(Views())
