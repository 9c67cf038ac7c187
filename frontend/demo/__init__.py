"""The program of `make demo`: trains a classifier on scanned digits through the whole stack.

Read in this order: train (the digits, an operator of our own, the model, the loop), picture, story (the order in which
it is all told, and what can be seen on the way). Every file uses public names only, as a user's program would.
"""

from redispatch import _moved

from .story import tell
from .train import MissingExtra

__all__ = ["MissingExtra", "tell"]

_moved.join(__name__)
