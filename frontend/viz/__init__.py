"""Seeing what happens: explanations, traces as pages, pictures and files, and pictures of the autograd graph.

What is seen is recorded in dispatch/inspection/trace.py; here it is only shown. Read next: explanation.py, then
tables.py (a trace as plain tables, and the page, file and notebook's tree made of them), and graph_picture.py.
"""

from redispatch import _moved

from .explanation import Explanation, explain
from .graph_picture import GraphPicture, graph
from .slides import Inline, keyset, modes, storages
from .views import Views

__all__ = ["Explanation", "GraphPicture", "Inline", "Views", "explain", "graph", "keyset", "modes", "storages"]

_moved.join(__name__)
