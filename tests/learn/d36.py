"""Lesson D36, the teacher's part: a solution, and misconceptions as changes of it, with the part that refuses each."""

SOLUTION = """
SHARING = ("t", "add_", "mul_")


def memory(nodes):
    found = {}
    for one in nodes:
        found[one.name] = found[one.reads[0]] if one.op in SHARING else one.name
    return found


def without_dead_code(nodes, results):
    read, kept = set(results), []
    for one in reversed(nodes):
        if one.op in ("input", "add_", "mul_") or one.name in read:
            kept.append(one)
            read.update(one.reads)
    return kept[::-1], results


def is_written(nodes, where, places):
    return any(one.op in ("add_", "mul_") and where[one.name] in places for one in nodes)


def needless(nodes, results, i):
    where, one = memory(nodes), nodes[i]
    source = where[one.reads[0]]
    if is_written(nodes[i + 1:], where, {one.name, source}):
        return False
    returned = {where[name] for name in results}
    inputs = {other.name for other in nodes if other.op == "input"}
    return one.name not in returned or (source not in inputs and source not in returned)


def without_copies(nodes, results):
    i = 0
    while i < len(nodes):
        one = nodes[i]
        if one.op == "clone" and needless(nodes, results, i):
            other = {one.name: one.reads[0]}
            nodes = [n._replace(reads=[other.get(r, r) for r in n.reads]) for n in nodes if n is not one]
            results = [other.get(r, r) for r in results]
        else:
            i += 1
    return nodes, results


def fused(nodes, results):
    i = 0
    while i < len(nodes):
        one = nodes[i]
        for k in (1, 0) if one.op == "add" else ():
            name = one.reads[k]
            j = next(j for j, other in enumerate(nodes) if other.name == name)
            product, where = nodes[j], memory(nodes)
            readers = [r for other in nodes for r in other.reads] + results
            if product.op != "mm" or readers.count(name) != 1:
                continue
            if is_written(nodes[j + 1:i], where, {where[r] for r in product.reads}):
                continue
            nodes = list(nodes)
            nodes[i] = Node(one.name, "addmm", [one.reads[1 - k], *product.reads])
            del nodes[j]
            i -= 1
            break
        i += 1
    return nodes, results
"""

WRITES = 'one.op in ("add_", "mul_") and where[one.name] in places'
WRONG = {  # what is thought -> (part, what stands there, what stands there instead)
    "a write whose value nobody reads is dead": ("dead code", '("input", "add_", "mul_")', '("input",)'),
    "what a dead node reads is read": (
        "dead code",
        "            kept.append(one)\n            read.update(one.reads)",
        "            kept.append(one)\n        read.update(one.reads)",
    ),
    "what is no result is dead": ("dead code", "            read.update(one.reads)\n", ""),
    "a copy is always needless": ("copies", " and needless(nodes, results, i)", ""),
    "only writes to the copy count": ("copies", "where, {one.name, source}", "where, {one.name}"),
    "only writes to the source count": ("copies", "where, {one.name, source}", "where, {source}"),
    "a write through a view is no write to its base": ("copies", 'SHARING = ("t", ', "SHARING = ("),
    "writes before the copy count": ("copies", "is_written(nodes[i + 1:], where", "is_written(nodes, where"),
    "a result may be an input": ("copies", "source not in inputs and source not in returned", "source not in returned"),
    "two results may be one": ("copies", "source not in inputs and source not in returned", "source not in inputs"),
    "a product that others read is fused": ("fusion", " or readers.count(name) != 1", ""),
    "results do not read": ("fusion", "for r in other.reads] + results", "for r in other.reads]"),
    "a product may be computed later": (
        "fusion",
        "if is_written(nodes[j + 1:i], where, {where[r] for r in product.reads}):",
        "if False:",
    ),
    "the order of the product's arguments is free": ("fusion", "*product.reads]", "*product.reads[::-1]]"),
    "the product stands on the left": ("fusion", "for k in (1, 0) if", "for k in (0,) if"),
}
