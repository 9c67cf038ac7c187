"""How Sphinx builds these pages: MyST Markdown, executed chapters, no request to any other site."""

import importlib.metadata
import os
from pathlib import Path

os.environ.setdefault("REDISPATCH_QUIET", "1")  # pages show what cells print, and not what was compiled for them

project = "redispatch"
author = "redispatch contributors"
copyright = "2026, redispatch contributors"
release = importlib.metadata.version("redispatch")

extensions = ["myst_nb"]
myst_enable_extensions = ["colon_fence", "deflist"]  # no math: MathJax would come from another site
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

exclude_patterns = ["_build", "jupyter_execute"]

html_theme = "furo"
html_title = "redispatch"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False


def setup(app):
    """Before the pages are read, those of the operator reference are made from the registry."""

    def write_reference(app):
        from redispatch.reference import write  # here: it declares all operators, which only a build needs

        write(Path(app.srcdir) / "reference")

    app.connect("builder-inited", write_reference)
