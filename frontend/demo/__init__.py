"""What `make demo` runs: a classifier trained on scanned digits through the whole stack.

Read in this order: data (the digits), activation (an operator of our own), model, train, tour (what can be seen on the
way), picture, story (the order in which it is all told). Every file uses public names only, as a user's program would.
"""

from redispatch import _moved

from .story import tell
from .train import MissingExtra

__all__ = ["MissingExtra", "tell"]

_moved.join(__name__)
