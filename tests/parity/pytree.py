"""Our pytrees against PyTorch's, on random trees: leaves, specs and their text, paths, maps, mismatches, JSON.

Run with a Python that has torch: `python tests/parity/pytree.py [trees]`. Exits non-zero on any difference.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple

import torch.utils._pytree as theirs
from loading import load

ours = load("utils._pytree")
Point = namedtuple("Point", "x y")
for module in (ours, theirs):
    module._register_namedtuple(Point, serialized_type_name="parity.Point")


def tree(rng: random.Random, depth: int):
    """A random tree; its leaves are ints, strings and None."""
    kind = rng.randrange(11) if depth else 99
    children = [tree(rng, depth - 1) for _ in range(rng.randrange(4))] if depth else []
    named = {rng.choice(["a", "b", "c", 1, 2]): child for child in children}
    if kind == 6:
        return Point(tree(rng, depth - 1), tree(rng, depth - 1))
    makers = [list, tuple, lambda _: named, lambda _: OrderedDict(named), lambda _: defaultdict(list, named)]
    makers.append(lambda children: deque(children, maxlen=rng.choice([None, 9])))
    return makers[kind](children) if kind < len(makers) else rng.choice([rng.randrange(9), "leaf", None])


def outcome(function):
    """The result of a call, in words, or the class and message of its error."""
    try:
        return repr(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}" if isinstance(error, ValueError) else type(error).__name__


def observations(m, a, b):
    """The observations of one module about a pair of trees; each entry is a call."""
    spec = m.tree_structure(a)
    nested = isinstance
    return [
        lambda: m.tree_flatten(a),
        lambda: (spec.num_leaves, spec.num_nodes, spec.num_children, spec.is_leaf(), spec.context),
        lambda: m.tree_unflatten(range(spec.num_leaves), spec),
        lambda: m.tree_unflatten([], spec),
        lambda: m.tree_leaves(a, is_leaf=lambda t: nested(t, dict)),
        lambda: list(m.tree_iter(a)),
        lambda: m.tree_map(lambda leaf: (leaf,), a),
        lambda: m.tree_map(lambda leaf: [leaf], a, is_leaf=lambda t: nested(t, tuple)),
        lambda: m.tree_map(lambda x, y: [x, y], a, b),
        lambda: m.tree_map(lambda x, y: (x, y), a, m.tree_map(str, a)),
        lambda: m.tree_map_only(int, lambda leaf: -leaf, a),
        lambda: m.tree_map_only((int, str), str, a),
        lambda: m.tree_map_only(lambda leaf: leaf is None, str, a),
        lambda: m.tree_map_(lambda leaf: 0, a) is a,
        lambda: m.tree_any_only(int, lambda leaf: leaf > 7, a),
        lambda: m.tree_all(lambda leaf: leaf is not None, a),
        lambda: [(m.keystr(path), m.key_get(a, path)) for path, _ in m.tree_flatten_with_path(a)[0]],
        lambda: m.tree_map_with_path(lambda path, leaf: m.keystr(path), a),
        # As a set: for dicts whose keys stand in another order than the spec's, PyTorch pairs leaves with wrong keys.
        lambda: sorted(m._broadcast_to_and_flatten(b, spec), key=repr),
        lambda: m._broadcast_to_and_flatten(0, spec),
        lambda: spec == m.tree_structure(b),
        lambda: spec.flatten_up_to(b),
        lambda: m.treespec_dumps(spec),
        lambda: m.treespec_loads(m.treespec_dumps(spec)) == spec,
        lambda: m.treespec_pprint(spec),
        lambda: m.tree_is_leaf(a),
    ]


def compare(count: int) -> int:
    rng = random.Random(0)
    wrong = total = 0
    for _ in range(count):
        a = tree(rng, 3)
        b = tree(rng, 3) if rng.random() < 0.5 else theirs.tree_map(lambda leaf: tree(rng, 1), a)
        for i, (mine, other) in enumerate(zip(observations(ours, a, b), observations(theirs, a, b), strict=True)):
            total += 1
            if outcome(mine) != outcome(other):
                wrong += 1
                if wrong <= 10:
                    print(f"observation {i} of {a!r} and {b!r}\n  ours   {outcome(mine)}\n  theirs {outcome(other)}")
    print(f"{total - wrong} of {total} observations on {count} pairs of trees are the same")
    return wrong


if __name__ == "__main__":
    sys.exit(1 if compare(int(sys.argv[1]) if len(sys.argv) > 1 else 2000) else 0)
