"""Lesson D11, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
import math


class Saved:
    def __init__(self, tensor):
        self.values, self.counter, self.version = tensor.values, tensor.counter, tensor.counter[0]

    def unpack(self):
        if self.counter[0] != self.version:
            raise RuntimeError(f"written: version {self.counter[0]}, kept at {self.version}")
        return self.values


def product(a, b):
    return [x * y for x, y in zip(a, b)]


class Tensor:
    def __init__(self, values, requires_grad=False):
        self.values, self.counter, self.requires_grad, self.grad = values, [0], requires_grad, None
        self.node, self.is_leaf = None, True
        if requires_grad:
            self.node = Node([], self.accumulate)

    def accumulate(self, gradient):
        self.grad = gradient if self.grad is None else [a + b for a, b in zip(self.grad, gradient)]
        return []

    def bare(self):
        found = Tensor(self.values)
        return found

    def detach(self):
        found = self.bare()
        found.counter = self.counter
        return found

    def data(self):
        return self.bare()

    def recorded(self, node):
        if node is not None:
            self.node, self.requires_grad, self.is_leaf = node, True, False
        return self

    def written(self, values):
        self.values[:] = values
        self.counter[0] += 1

    def refuse(self):
        if Mode.recording and self.requires_grad and self.is_leaf:
            raise RuntimeError("a leaf that requires grad is written")

    def mul_node(self, other, old=None):
        if not wanted(self, other):
            return None
        a = Saved(other) if self.requires_grad else None
        b = None
        if other.requires_grad:
            b = Saved(self) if old is None else Copy(old)

        def run(gradient):
            return [saved and product(gradient, saved.unpack()) for saved in (a, b)]

        return Node([self.node, other.node], run)

    def mul(self, other):
        return Tensor(product(self.values, other.values)).recorded(self.mul_node(other))

    def mul_(self, other):
        self.refuse()
        node = self.mul_node(other, list(self.values))
        self.written(product(self.values, other.values))
        return self.recorded(node)

    def add_node(self, other):
        if not wanted(self, other):
            return None
        return Node([self.node, other.node], lambda gradient: [gradient, gradient])

    def sum(self, other):
        return [a + b for a, b in zip(self.values, other.values)]

    def add(self, other):
        return Tensor(self.sum(other)).recorded(self.add_node(other))

    def add_(self, other):
        self.refuse()
        node = self.add_node(other)
        self.written(self.sum(other))
        return self.recorded(node)

    def tanh_node(self, result):
        if not wanted(self):
            return None
        saved = Saved(result)
        return Node([self.node], lambda g: [[a * (1 - r * r) for a, r in zip(g, saved.unpack())]])

    def tanh(self):
        result = Tensor([math.tanh(one) for one in self.values])
        return result.recorded(self.tanh_node(result))

    def tanh_(self):
        self.refuse()
        self.written([math.tanh(one) for one in self.values])
        return self.recorded(self.tanh_node(self))

    def backward(self):
        if self.node is None:
            raise RuntimeError("does not require grad")
        send(self.node, [1.0] * len(self.values))


class Copy:
    def __init__(self, values):
        self.values = values

    def unpack(self):
        return self.values


def wanted(*tensors):
    return Mode.recording and any(one.requires_grad for one in tensors)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    ".data shares the counter": (
        "versions",
        ("        return self.bare()\n\n    def recorded"),
        ("        return self.detach()\n\n    def recorded"),
    ),
    ".data shares the counter, where it matters": (
        "writes",
        ("        return self.bare()\n\n    def recorded"),
        ("        return self.detach()\n\n    def recorded"),
    ),
    "detach has a counter of its own": ("versions", "        found.counter = self.counter\n", ""),
    "detach begins with the version that there is": (
        "versions",
        "found.counter = self.counter\n",
        "found.counter = [self.counter[0]]\n",
    ),
    ".data goes on from the version that there is": (
        "versions",
        ("        return self.bare()\n\n    def recorded"),
        (
            "        found = self.bare()\n"
            "        found.counter = [self.counter[0]]\n"
            "        return found\n"
            "\n"
            "    def recorded"
        ),
    ),
    "detach copies": ("versions", "found = Tensor(self.values)\n", "found = Tensor(list(self.values))\n"),
    "writes under no_grad do not count": (
        "versions",
        "        self.counter[0] += 1",
        "        self.counter[0] += Mode.recording",
    ),
    "writes that change nothing do not count": (
        "versions",
        ("        self.values[:] = values\n        self.counter[0] += 1"),
        ("        self.counter[0] += values != self.values\n        self.values[:] = values"),
    ),
    "a copy is kept": (
        "writes",
        "self.values, self.counter, self.version = tensor.values,",
        "self.values, self.counter, self.version = list(tensor.values),",
    ),
    "nothing is compared": ("writes", "        if self.counter[0] != self.version:", "        if False:"),
    "values are compared": (
        "writes",
        "tensor.counter[0]\n\n    def unpack",
        "list(tensor.values)\n\n    def unpack",
        "if self.counter[0] != self.version:",
        "if self.values != self.version:",
    ),
    "both factors are kept": ("writes", "a = Saved(other) if self.requires_grad else None", "a = Saved(other)"),
    "a sum keeps its terms": (
        "writes",
        "        return Node([self.node, other.node], lambda gradient: [gradient, gradient])",
        (
            "        kept = Saved(self)\n"
            "        return Node([self.node, other.node], lambda gradient: [gradient, gradient, kept.unpack()][:2])"
        ),
    ),
    "tanh keeps its input": (
        "writes",
        "saved = Saved(result)\n",
        "saved = Saved(self)\n",
        "zip(g, saved.unpack())",
        "zip(g, map(math.tanh, saved.unpack()))",
    ),
    "what a write keeps is kept before it counts": (
        "writes",
        (
            "        self.written([math.tanh(one) for one in self.values])\n"
            "        return self.recorded(self.tanh_node(self))"
        ),
        (
            "        node = self.tanh_node(self)\n"
            "        self.written([math.tanh(one) for one in self.values])\n"
            "        return self.recorded(node)"
        ),
    ),
    "a write keeps the old values without copying": (
        "writes",
        "Saved(self) if old is None else Copy(old)",
        "Saved(self)",
    ),
    "a write has no history": (
        "writes",
        ("        self.written(product(self.values, other.values))\n        return self.recorded(node)"),
        ("        self.written(product(self.values, other.values))\n        return self"),
    ),
    "a leaf may be written": ("leaves", "        if Mode.recording and", "        if False and"),
    "a leaf may never be written": (
        "leaves",
        "        if Mode.recording and self.requires",
        "        if self.requires",
    ),
    "whatever requires grad may not be written": ("writes", " and self.is_leaf:", ":"),
    "a write under no_grad cuts the history": (
        "writes",
        "        if node is not None:\n",
        ("        if node is None:\n            self.node, self.requires_grad = None, False\n        else:\n"),
    ),
}
