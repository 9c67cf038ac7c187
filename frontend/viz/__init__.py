"""Seeing what happens: explanations, traces as pages, pictures and files, and pictures of the autograd graph.

What is seen is recorded in dispatch/inspection/trace.py; here it is only shown. Read next: explanation.py, then
tables.py (a trace as plain tables) and what is made of them: page.py, chrome.py, notebook.py. For the graph:
graph_model.py, graph_text.py, graph_layout.py, graph_picture.py.
"""

from .explanation import Explanation, explain
from .graph_picture import GraphPicture, graph
from .views import Views

__all__ = ["Explanation", "GraphPicture", "Views", "explain", "graph"]
