"""What `make test` tries, of all that there is to try: a part that a seed draws. `make test-all` tries everything.

    one_in(8, "vmap", info)              whether this operator is among the eighth of them that is tried under vmap
    draw(info.dtypes, "values", info)    the one dtype that is tried

The seed is the day (UTC), unless the environment variable REDISPATCH_SEED says another one; pytest's header prints it,
so that whoever sees a failure can have the same drawn again. docs/decisions/0008 says why it is the day.
"""

import hashlib
import os
import random
from datetime import UTC, datetime

from hypothesis import settings

# In the environment, so that the workers of xdist and programs that tests start draw the same, at midnight, too
SEED = os.environ.setdefault("REDISPATCH_SEED", datetime.now(UTC).date().isoformat())

everything = False  # conftest.py sets it, where pytest was called with --all


def generator(*words):
    """A random generator for one draw, which depends on the seed and on what is drawn for."""
    return random.Random(number(*words))


def number(*words):
    """A number that the seed and the words determine. (Not crc32: of two seeds it differs by a constant.)"""
    text = " ".join(map(str, (SEED, *words)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def one_in(count, *words):
    """Whether this is drawn, where one of so many is; always, where everything is tried."""
    return everything or count == 1 or number(*words) % count == 0


def at_length(count):
    """Gives a property so many examples where everything is tried, and elsewhere as many as others."""
    return settings(max_examples=count) if everything else settings()


def draw(choices, *words, count=1):
    """`count` of the choices, in their order; all of them, where everything is tried."""
    choices = list(choices)
    if everything or len(choices) <= count:
        return choices
    return [choices[place] for place in sorted(generator(*words).sample(range(len(choices)), count))]
