"""Lesson D23, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
from heapq import heappop, heappush


def counts(roots, edges):
    found = {}
    todo = []
    for node, number in roots:
        if node not in found:
            todo.append(node)
        found[node] = found.get(node, 0) + 1
    while todo:
        for edge in edges[todo.pop()]:
            if edge is None:
                continue
            if edge[0] not in found:
                todo.append(edge[0])
            found[edge[0]] = found.get(edge[0], 0) + 1
    return found


def leading_to(targets, edges, reached):
    callers = {}
    for node in reached:
        for edge in edges[node]:
            if edge is not None:
                callers.setdefault(edge[0], []).append(node)
    found = set()
    todo = [node for node, number in targets]
    while todo:
        for caller in callers.get(todo.pop(), ()):
            if caller not in found:
                found.add(caller)
                todo.append(caller)
    return found


def backward(roots, gradients, edges, outputs, run, add, targets):
    left = counts(roots, edges)
    needed = leading_to(targets, edges, left) if targets else set(left)
    come = {}
    ready = []
    caught = [None] * len(targets)

    def arrive(node, number, gradient):
        given = come.setdefault(node, [None] * outputs[node])
        if gradient is not None:
            given[number] = gradient if given[number] is None else add(given[number], gradient)
        left[node] -= 1
        if left[node] == 0:
            heappush(ready, -node)

    for (node, number), gradient in zip(roots, gradients):
        arrive(node, number, gradient)
    while ready:
        node = -heappop(ready)
        given = come.pop(node)
        for place, (target, number) in enumerate(targets):
            if target == node:
                caught[place] = given[number]
        if node in needed:
            for edge, result in zip(edges[node], run(node, given)):
                if edge is not None:
                    arrive(edge[0], edge[1], result)
    return caught
"""

# A recursion that sends each gradient on at once: right in every value.
AT_ONCE = """
    def send(node, number, gradient):
        given = [gradient if i == number else None for i in range(outputs[node])]
        for place, (target, wanted) in enumerate(targets):
            if target == node and given[wanted] is not None:
                caught[place] = gradient if caught[place] is None else add(caught[place], gradient)
        if node in needed:
            for edge, result in zip(edges[node], run(node, given)):
                if edge is not None:
                    send(edge[0], edge[1], result)

    for (node, number), gradient in zip(roots, gradients):
        send(node, number, gradient)
    return caught
"""

# An order found by recursion, as a small engine has it: right in every value, and no deeper than Python's stack.
BY_RECURSION = """
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for edge in edges[node]:
                if edge is not None:
                    visit(edge[0])
            order.append(node)

    for node, number in roots:
        visit(node)
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "each edge counts once for a pair of nodes": ("counts", "in edges[todo.pop()]:", "in set(edges[todo.pop()]):"),
    "a root does not count": ("counts", "found[node] = found.get(node, 0) + 1", "found[node] = 0"),
    "all edges count, reached or not": (
        "counts",
        "    return found\n\n\ndef leading",
        "    ends = [edge[0] for node in edges for edge in edges[node] if edge]\n"
        "    return {node: ends.count(node) + [a for a, _ in roots].count(node) for node in found}\n\n\ndef leading",
    ),
    "a root runs at once": (
        "backward",
        "        arrive(node, number, gradient)\n    while",
        "        left[node] = 1\n        arrive(node, number, gradient)\n    while",
    ),
    "gradients go on at once, by recursion": (
        "diamonds and depth",
        "    def arrive(node",
        AT_ONCE + "\n    def arrive(node",
    ),
    "at once, and small graphs do not tell": ("backward", "    def arrive(node", AT_ONCE + "\n    def arrive(node"),
    "an order by recursion": (
        "diamonds and depth",
        "    come = {}\n",
        BY_RECURSION + ("\n    come = {}\n"),
        "        if left[node] == 0:\n",
        "        if left[node] == 0 and order:\n",
    ),
    "None has not come": (
        "backward",
        ("                if edge is not None:\n                    arrive(edge[0], edge[1], result)"),
        (
            "                if edge is not None and result is not None:\n"
            "                    arrive(edge[0], edge[1], result)"
        ),
    ),
    "a node that gets None alone does not run": (
        "backward",
        "        if node in needed:\n",
        "        if node in needed and any(one is not None for one in given):\n",
    ),
    "the last gradient counts": ("backward", "add(given[number], gradient)", "gradient"),
    "a node has one output": ("backward", "given = come.pop(node)", "given = come.pop(node)[:1] * outputs[node]"),
    "first come, first served": (
        "backward",
        "heappush(ready, -node)",
        "ready.append(-node)",
        "heappop(ready)",
        "ready.pop(0)",
    ),
    "a stack is as good": (
        "backward",
        "heappush(ready, -node)",
        "ready.append(-node)",
        "heappop(ready)",
        "ready.pop()",
    ),
    "earlier calls run first": (
        "backward",
        "heappush(ready, -node)",
        "heappush(ready, node)",
        "-heappop(ready)",
        "heappop(ready)",
    ),
    "a target runs": (
        "targets",
        "        if node in needed:\n",
        "        if node in needed or node in [one for one, _ in targets]:\n",
    ),
    "a target never runs": (
        "targets",
        "        if node in needed:\n",
        "        if node in needed and node not in [one for one, _ in targets]:\n",
    ),
    "everything runs, whatever is asked for": ("targets", " if targets else set(left)", " and set(left)"),
    "a target's first gradient is caught": (
        "targets",
        "        left[node] -= 1\n",
        "        for place, target in enumerate(targets):\n"
        "            if target == (node, number) and caught[place] is None:\n"
        "                caught[place] = gradient\n"
        "        left[node] -= 1\n",
        "                caught[place] = given[number]\n",
        "                pass\n",
    ),
    "a target is asked for once": (
        "targets",
        "                caught[place] = given[number]\n",
        ("                caught[place] = given[number]\n                break\n"),
    ),
}
