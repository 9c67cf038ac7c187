"""How often a random test is repeated: a fiftieth of the full count, with the same cases each time, or all of them."""

import random

import pytest


def cases(full, seed=0):
    """Parametrizes a test with `count` and `random`; the full count, with new cases, is left to the long run."""
    fresh = random.SystemRandom().randrange(2**32)
    return pytest.mark.parametrize(
        "count, seed",
        [
            pytest.param(full // 50, seed, id=str(full // 50)),
            pytest.param(full, fresh, id=f"{full}", marks=pytest.mark.long),
        ],
    )
