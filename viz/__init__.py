"""Seeing what happens: explanations, and traces as pages, pictures and files.

What is seen is recorded in dispatch/trace.py; here it is only shown. Read next: explanation.py, then tables.py (a trace
as plain tables) and what is made of them: page.py, chrome.py, notebook.py.
"""

from .explanation import Explanation, explain
from .views import Views

__all__ = ["Explanation", "Views", "explain"]
