"""Lesson D27, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
def counted(holds, names):
    counts = dict.fromkeys(holds, 0)
    for held in holds.values():
        for one in held:
            counts[one] += 1
    for name in names:
        counts[name] += 1
    dying = [one for one, count in counts.items() if count == 0]
    alive = set(holds)
    while dying:
        dead = dying.pop()
        alive.remove(dead)
        for one in holds[dead]:
            counts[one] -= 1
            if counts[one] == 0:
                dying.append(one)
    return alive


def collected(holds, names):
    reached = set(names)
    todo = list(names)
    while todo:
        for one in holds[todo.pop()]:
            if one not in reached:
                reached.add(one)
                todo.append(one)
    return counted(holds, names) - reached


def holds(program):
    found, grads = {}, []

    def behind(a):
        return [] if not grads[a] else [f"t{a}" if program[a][0] == "leaf" else f"n{a}"]

    for i, (name, *inputs) in enumerate(program):
        grads.append(name == "leaf" or any(grads[a] for a in inputs))
        found[f"m{i}"] = []
        found[f"t{i}"] = [f"m{i}"]
        if not inputs or not grads[i]:
            continue
        found[f"t{i}"].append(f"n{i}")
        node = found[f"n{i}"] = [one for a in inputs for one in behind(a)]
        if name == "mul":
            a, b = inputs
            if grads[a]:
                node.append(f"t{b}")
            if grads[b]:
                node.append(f"t{a}")
        if name == "tanh":
            node.append(f"m{i}")
    return found
"""

WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "what no name leads to is dead": (
        "counted",
        "    return alive\n",
        (
            "    return alive - reach(holds, names)\n"
            "\n"
            "\n"
            "def reach(holds, names):\n"
            "    found, todo = set(names), list(names)\n"
            "    while todo:\n"
            "        new = set(holds[todo.pop()]) - found\n"
            "        found |= new\n"
            "        todo += new\n"
            "    return set(holds) - found\n"
        ),
    ),
    "holding twice counts once": ("counted", "        for one in held:\n", "        for one in set(held):\n"),
    "what is held by itself alone dies": (
        "counted",
        ("    for held in holds.values():\n        for one in held:\n            counts[one] += 1\n"),
        ("    for name, held in holds.items():\n        for one in held:\n            counts[one] += one != name\n"),
    ),
    "the dead still hold": ("counted", "            counts[one] -= 1\n", "            pass\n"),
    "names do not count": ("counted", "    for name in names:\n        counts[name] += 1\n", ""),
    "dying is a recursion": (
        "counted",
        ("    while dying:\n        dead = dying.pop()\n"),
        "    def die(dead):\n",
        ("            if counts[one] == 0:\n                dying.append(one)\n    return alive"),
        (
            "            if counts[one] == 0:\n"
            "                die(one)\n"
            "    for one in dying:\n"
            "        die(one)\n"
            "    return alive"
        ),
    ),
    "the collector frees what lies in a cycle, named or not": (
        "collected",
        "    return counted(holds, names) - reached",
        "    return counted(holds, [])",
    ),
    "only what lies on a cycle is collected": (
        "collected",
        "    return counted(holds, names) - reached",
        (
            "    free = counted(holds, names) - reached\n"
            "    return {a for a in free if any(a in held for b, held in holds.items() if b in holds[a])}"
        ),
    ),
    "a node holds its result": ("no cycle", '            node.append(f"m{i}")', '            node.append(f"t{i}")'),
    "a node holds its result, whoever lives": (
        "holds",
        '            node.append(f"m{i}")',
        '            node.append(f"t{i}")',
    ),
    "tanh keeps its input": ("holds", '            node.append(f"m{i}")', '            node.append(f"t{inputs[0]}")'),
    "a node holds the tensors behind it": ("holds", 'else f"n{a}"]', 'else f"t{a}"]'),
    "a node holds what led to it: nothing": (
        "no cycle",
        '        node = found[f"n{i}"] = [one for a in inputs for one in behind(a)]',
        '        node = found[f"n{i}"] = []',
    ),
    "mul keeps memory, not tensors": (
        "holds",
        'node.append(f"t{b}")',
        'node.append(f"m{b}")',
        'node.append(f"t{a}")',
        'node.append(f"m{a}")',
    ),
    "mul keeps both factors": (
        "holds",
        "            if grads[a]:\n",
        "            if True:\n",
        "            if grads[b]:\n",
        "            if True:\n",
    ),
    "each factor is kept for its own gradient": (
        "holds",
        "            if grads[a]:\n",
        "            if grads[b]:\n",
        ('            if grads[b]:\n                node.append(f"t{a}")'),
        ('            if grads[a]:\n                node.append(f"t{a}")'),
    ),
    "add keeps its terms": ("holds", '        if name == "mul":', '        if name != "tanh":'),
    "leaves are held weakly": (
        "holds",
        '[f"t{a}" if program[a][0] == "leaf" else f"n{a}"]',
        '[f"m{a}" if program[a][0] == "leaf" else f"n{a}"]',
    ),
    "a call of constants has a node": ("holds", "        if not inputs or not grads[i]:", "        if not inputs:"),
    "the graph holds the tensor of each node": (
        "no cycle",
        '        if name == "tanh":',
        ('        node.append(f"t{i}")\n        if name == "tanh":'),
    ),
}
