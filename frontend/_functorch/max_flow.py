"""Finds a maximum flow, and by it a minimum cut, after Dinic.

    network = Network(4)
    network.add(0, 2, 5); network.add(2, 3, 3); network.add(3, 1, 9)
    network.flow(0, 1)                 # 3
    1 in network.leading_to(1)         # the side of the drain; the cut lies where it begins

Each round numbers the places by their distance from the source, and fills the ways on which the distance grows until
all of these have a full pipe. A round is linear in the pipes but for the ways found; there are few, since the distance
of the drain grows from one to the next. Capacities are of any size, infinite ones included.

Source: Dinic, "Algorithm for solution of a problem of maximum flow in a network with power estimation", 1970.
"""

from __future__ import annotations

import math


class Network:
    """Places 0 to `size` - 1, and pipes between them. Each pipe has one that leads back beside it, at number ^ 1."""

    def __init__(self, size: int) -> None:
        self.out: list[list[int]] = [[] for _ in range(size)]  # the pipes that begin at a place
        self.end: list[int] = []  # of each pipe
        self.free: list[float] = []  # how much more it can take

    def add(self, start: int, end: int, capacity: float) -> None:
        """Adds a pipe."""
        for a, b, free in ((start, end, capacity), (end, start, 0)):
            self.out[a].append(len(self.end))
            self.end.append(b)
            self.free.append(free)

    def flow(self, source: int, drain: int) -> float:
        """Returns the greatest flow, and leaves the pipes as it fills them; infinity where nothing bounds it."""
        total = 0.0
        while (distance := self.distances(source, drain)) is not None:
            untried = [list(pipes) for pipes in self.out]
            while (way := self.way(source, drain, distance, untried)) is not None:
                amount = min(self.free[pipe] for pipe in way)
                if amount == math.inf:
                    return math.inf
                for pipe in way:
                    self.free[pipe] -= amount
                    self.free[pipe ^ 1] += amount
                total += amount
        return total

    def distances(self, source: int, drain: int) -> list[int] | None:
        """Returns how many pipes lead to each place, -1 where none do; None where none lead to the drain."""
        distance = [-1] * len(self.out)
        distance[source], layer = 0, [source]
        while layer and distance[drain] < 0:
            following = []
            for place in layer:
                for pipe in self.out[place]:
                    end = self.end[pipe]
                    if self.free[pipe] and distance[end] < 0:
                        distance[end] = distance[place] + 1
                        following.append(end)
            layer = following
        return distance if distance[drain] >= 0 else None

    def way(self, source: int, drain: int, distance: list[int], untried: list[list[int]]) -> list[int] | None:
        """Returns pipes to the drain that can take more, and lead farther each; takes dead ends out of `untried`."""
        found: list[int] = []
        place = source
        while place != drain:
            pipes = untried[place]
            while pipes and not (self.free[pipes[-1]] and distance[self.end[pipes[-1]]] == distance[place] + 1):
                pipes.pop()
            if pipes:
                found.append(pipes[-1])
                place = self.end[pipes[-1]]
            elif found:
                place = self.end[found.pop() ^ 1]
                untried[place].pop()
            else:
                return None
        return found

    def leading_to(self, drain: int) -> set[int]:
        """Returns the places from which more could flow to the drain; behind `flow`, those on its side of a cut."""
        found, todo = {drain}, [drain]
        while todo:
            for pipe in self.out[todo.pop()]:
                start = self.end[pipe]
                if self.free[pipe ^ 1] and start not in found:
                    found.add(start)
                    todo.append(start)
        return found
