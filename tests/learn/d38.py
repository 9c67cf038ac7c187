"""Lesson D38, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
import math
from collections import deque


class Net:
    def __init__(self, size, pipes):
        self.out = [[] for _ in range(size)]
        self.end, self.room = [], []
        for start, end, width in pipes:
            for a, b, room in ((start, end, width), (end, start, 0)):
                self.out[a].append(len(self.end))
                self.end.append(b)
                self.room.append(room)

    def reached(self, source):
        by, todo = {source: None}, deque([source])
        while todo:
            place = todo.popleft()
            for pipe in self.out[place]:
                if self.room[pipe] > 0 and self.end[pipe] not in by:
                    by[self.end[pipe]] = pipe
                    todo.append(self.end[pipe])
        return by

    def fill(self, source, drain):
        total = 0
        while True:
            by = self.reached(source)
            if drain not in by:
                return total, by
            way, place = [], drain
            while by[place] is not None:
                way.append(by[place])
                place = self.end[by[place] ^ 1]
            amount = min(self.room[pipe] for pipe in way)
            if amount == math.inf:
                return math.inf, by
            for pipe in way:
                self.room[pipe] -= amount
                self.room[pipe ^ 1] += amount
            total += amount


def max_flow(size, pipes, source, drain):
    return Net(size, pipes).fill(source, drain)[0]


def min_cut(size, pipes, source, drain):
    side = Net(size, pipes).fill(source, drain)[1]
    return [i for i, (start, end, width) in enumerate(pipes) if start in side and end not in side and width]


def saved(nodes, results, gradients):
    late = set()
    for one in nodes:
        if one.kind == "tangent" or any(name in late for name in one.reads):
            late.add(one.name)
    needed = leading_to(nodes, results)
    wanted = leading_to(nodes, gradients)
    early = [one for one in nodes if one.name not in late and one.name in wanted]
    entry = {one.name: 2 * i + 2 for i, one in enumerate(early)}
    pipes = []
    for one in early:
        at = entry[one.name]
        pipes.append((at, at + 1, one.bytes))
        if one.kind == "input" or one.kind == "dear" and one.name in needed:
            pipes.append((0, at, math.inf))
        if one.name in gradients:
            pipes.append((at + 1, 1, math.inf))
    for one in nodes:
        for name in one.reads:
            if one.name in entry:
                pipes.append((entry[name] + 1, entry[one.name], math.inf))
            elif one.name in late and one.name in wanted and name in entry:
                pipes.append((entry[name] + 1, 1, math.inf))
    cut = min_cut(2 * len(early) + 2, pipes, 0, 1)
    return {one.name for one in early for i in cut if pipes[i][0] == entry[one.name]}


def leading_to(nodes, names):
    found = set(names)
    for one in reversed(nodes):
        if one.name in found:
            found.update(one.reads)
    return found
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "a filled pipe stays filled": ("max_flow", "self.room[pipe ^ 1] += amount", "pass"),
    "pipes lead both ways": ("max_flow", "(end, start, 0)", "(end, start, width)"),
    "one pipe between two places": (
        "max_flow",
        "in pipes:\n            for a",
        "in {p[:2]: p for p in pipes}.values():\n            for a",
    ),
    "one round is enough": ("max_flow", "total += amount", "return amount, by"),
    "every full pipe is in the cut": (
        "min_cut",
        "side = Net(size, pipes).fill(source, drain)[1]",
        "net = Net(size, pipes); net.fill(source, drain)",
        "start in side and end not in side and width",
        "width and net.room[2 * i] == 0",
    ),
    "the cut is what the source reaches before anything flows": (
        "min_cut",
        ".fill(source, drain)[1]",
        ".reached(source)",
    ),
    "pipes into the side are cut as well": (
        "min_cut",
        "start in side and end not in side",
        "(start in side) != (end in side)",
    ),
    "late values can be saved": (
        "saved",
        'one.kind == "tangent" or any(name in late for name in one.reads)',
        'one.kind == "tangent"',
        "if one.name in entry:",
        "if one.name in entry and name in entry:",
    ),
    "a value is saved once for each reader": (
        "saved",
        "pipes.append((entry[name] + 1, entry[one.name], math.inf))",
        "pipes.append((entry[name], entry[one.name], next(n.bytes for n in nodes if n.name == name)))",
    ),
    "inputs are there anyway": ("saved", 'one.kind == "input" or one.kind == "dear"', 'one.kind == "dear"'),
    "everything may be recomputed": ("saved", ' or one.kind == "dear" and one.name in needed', ""),
    "what backward alone needs is saved when it is dear": ("saved", " and one.name in needed", ""),
    "gradients are late, all of them": ("saved", "if one.name in gradients:", "if False:"),
    "what backward reads is saved": (
        "saved",
        "    cut = min_cut",
        "    read = {name for one in nodes if one.name in late for name in one.reads}\n"
        "    return (read | set(gradients)) & set(entry)\n    cut = min_cut",
    ),
    "the fewest values, not the fewest bytes": ("saved", "at + 1, one.bytes", "at + 1, 1"),
}
