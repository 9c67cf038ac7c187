"""The words of a Mersenne twister, MT19937: a sequence of 32-bit numbers, from a state of 624.

The state is an array of uint64, of which 632 are laid out as the 5,056 bytes in which PyTorch keeps a generator: a copy
is all that it takes to save one. The words of a seed are made when the first is asked for; seeding itself is three
assignments.

Source: Matsumoto and Nishimura, "Mersenne Twister", 1998. Read next: `twisted_numbers.py`, what words become.
"""

import numpy as np

from ..engine.program import integral
from ..engine.template import Template

int64, uint32, uint64 = np.int64, np.uint32, np.uint64

# Places in the state: behind the words three numbers, of which the second is a normal one that was left over. A place
# more tells how often the generator's lock is held; that is not PyTorch's.
SEED, LEFT, NEXT, WORDS, REST, SIZE = 0, 1, 2, 3, 627, 632
HELD = SIZE
# LEFT holds, below, how many words are left and one more; above, whether there are words at all.
LOW, SEEDED = np.uint64(0xFFFFFFFF), np.uint64(1 << 32)
ONE, NONE = np.uint64(1), np.uint64(0)
LENGTH, MULTIPLIER = np.uint64(624), np.uint64(1812433253)
UPPER, LOWER, MATRIX = np.uint64(0x80000000), np.uint64(0x7FFFFFFF), np.uint64(0x9908B0DF)
MASK_7, MASK_15 = np.uint64(0x9D2C5680), np.uint64(0xEFC60000)


UPPER_HALVES = slice(2 * WORDS + 1, 2 * REST, 2)  # of words, in units of 32 bits
NOTHING = np.zeros(SIZE - REST, uint64).data


def restart(state: memoryview, seed: int) -> None:
    """Begins the sequence of a seed; of its bits the lower 32 choose it."""
    state[SEED], state[LEFT], state[NEXT], state[REST:SIZE] = seed, 1, 0, NOTHING


def check(state: np.ndarray) -> None:
    """RuntimeError for what is no state."""
    seeded, left = divmod(state.item(LEFT), 1 << 32)
    if seeded != 1 or not 1 <= left <= 624 or state.item(NEXT) > 624:
        raise RuntimeError("Invalid mt19937 state")


def has_words(state: memoryview) -> bool:
    """Returns whether the words of the seed were made."""
    return bool(state[LEFT] >> 32)


@integral
def is_taken(state, held):
    """Whether the generator's lock is held by another one than who holds it so often."""
    return int64(state[632]) > held


@integral
def seed_words(state):
    word = state[0] & LOW
    state[3] = word
    for j in range(1, 624):
        word = (MULTIPLIER * (word ^ (word >> 30)) + uint64(j)) & LOW
        state[uint64(j + 3)] = word
    state[1] = state[1] | SEEDED


@integral
def mixed(x, y):
    """A word's highest bit and the others of the next one, moved on."""
    return (((x & UPPER) | (y & LOWER)) >> 1) ^ ((y & ONE) * MATRIX)


@integral
def twist(state):
    """Replaces all words by the next 624."""
    for j in range(3, 230):
        state[uint64(j)] = state[uint64(j + 397)] ^ mixed(state[uint64(j)], state[uint64(j + 1)])
    for j in range(230, 626):
        state[uint64(j)] = state[uint64(j - 227)] ^ mixed(state[uint64(j)], state[uint64(j + 1)])
    state[626] = state[399] ^ mixed(state[626], state[3])


@integral
def tempered(y):
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & MASK_7)
    y = y ^ ((y << 15) & MASK_15)
    return y ^ (y >> 18)


@integral
def draw_words(state, scratch, count):
    """Writes the next words into `scratch`."""
    if state[1] < SEEDED:
        seed_words(state)
    done = 0
    while done < count:
        left, at = int64(state[1] & LOW) - 1, int64(state[2])
        if left == 0:
            twist(state)
            left, at = int64(624), int64(0)
        some = min(left, count - done)
        for k in range(some):
            scratch[uint64(done + k)] = uint32(tempered(state[uint64(3 + at + k)]))
        state[1] = SEEDED | uint64(left + 1 - some)
        state[2] = uint64(at + some)
        done += some


def words_loop(lo, hi, state, scratch):
    """Writes as many words as there is from `lo` to `hi`; of a new seed none still makes the state."""
    draw_words(state, scratch, hi - lo)


DRAW_WORDS = Template(words_loop, "uint64[] state", "uint32[] scratch")
