"""Our `fx.passes` against PyTorch's on random graphs: how they are split, by a function, by tags and by what is
supported; names of what nodes call; sizes of nodes.

Run with a Python that has torch: `python tests/parity/fx_passes.py [graphs]`. Exits non-zero on any difference.
"""

from __future__ import annotations

import operator
import random
import sys
from importlib import import_module

import torch as theirs

import redispatch as ours

KINDS = ["add", "mul", "relu", "neg", "split", "param", "inner", "linear", "twice"]


def part(library, name):
    return import_module(f"{library.__name__}.fx.passes.{name}")


def step(library, graph, kind, x, y):
    """A node of a kind."""
    if kind == "neg":
        return graph.call_method("neg", (x,))
    if kind == "linear":
        return graph.call_module("inner.linear", (x,))
    if kind in ("param", "inner"):
        return graph.call_function(operator.add, (x, graph.get_attr("p" if kind == "param" else "inner.q")))
    function = {"add": operator.add, "mul": library.mul, "twice": library.mul, "relu": library.relu}[kind]
    args = {"add": (x, y), "mul": (x,), "twice": (x, x), "relu": (x,)}[kind]
    return graph.call_function(function, args, {"other": y} if kind == "mul" else {})


def module_of(library, recipe):
    """A GraphModule that computes a recipe: (kind, numbers of values) for each step, and what is returned."""
    steps, returned = recipe
    root, graph = library.nn.Module(), library.fx.Graph()
    root.p, root.inner = library.nn.Parameter(library.ones(2, 2)), library.nn.Module()
    root.inner.register_buffer("q", library.full((2, 2), 2.0))
    root.inner.linear = library.nn.Linear(2, 2, bias=False)
    library.nn.init.ones_(root.inner.linear.weight)
    values = [graph.placeholder(name) for name in "xy"]
    for kind, i, j in steps:
        x, y = values[i % len(values)], values[j % len(values)]
        if kind == "split":
            several = graph.call_function(library.broadcast_tensors, (x, y))
            values += [graph.call_function(operator.getitem, (several, k)) for k in (0, 1)]
            continue
        values.append(step(library, graph, kind, x, y))
    results = [values[i % len(values)] for i in returned]
    graph.output(results[0] if len(results) == 1 else tuple(results))
    return library.fx.GraphModule(root, graph)


def seen(library, module):
    """The nodes of a module's graph and of its submodules', in words."""
    found = []
    for node in module.graph.nodes:
        target = (
            node.target if isinstance(node.target, str) else part(library, "tools_common").get_node_target({}, node)
        )
        found.append((node.op, node.name, target, str(node.args), str(node.kwargs)))
    inner = {name: one for name, one in module.named_children() if isinstance(one, library.fx.GraphModule)}
    return found, {name: seen(library, one) for name, one in inner.items()}, sorted(dict(module.named_parameters()))


def outcome(library, recipe, change):
    """Returns a recipe's module after a change, and its results; or the class of the error, and how it begins."""
    module = module_of(library, recipe)
    try:
        changed = change(library, module)
        if not isinstance(changed, library.fx.GraphModule):
            return changed
        result = changed(library.ones(2, 2), library.full((2, 2), -3.0))
        values = [one.tolist() for one in (result if isinstance(result, tuple) else (result,))]
        return seen(library, changed), values
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0].split(":")[0][:34]


def split(numbers, **options):
    def change(library, module):
        number = {node.name: n for node, n in zip(module.graph.nodes, numbers, strict=False)}
        return part(library, "split_module").split_module(module, None, lambda node: number[node.name], **options)

    return change


def tagged(numbers, **options):
    def change(library, module):
        for node, number in zip(module.graph.nodes, numbers, strict=False):
            node.tag = f"t{number}"
        return part(library, "split_utils").split_by_tags(module, ["t0", "t1", "t2"], **options)

    return change


def supported(names, **options):
    def change(library, module):
        support = part(library, "operator_support").OperatorSupport(dict.fromkeys(names))
        functions = part(library, "operator_support").create_op_support(
            lambda modules, node: node.op.startswith("call")
        )
        support = part(library, "operator_support").chain(support, functions)
        partitioner = part(library, "infra.partitioner").CapabilityBasedPartitioner(module, support, **options)
        parts = partitioner.propose_partitions()
        listed = sorted(sorted(node.name for node in one.nodes) for one in parts)
        fused = partitioner.fuse_partitions(sorted(parts, key=lambda one: sorted(node.name for node in one.nodes)))
        fused.graph.lint()
        result = fused(library.ones(2, 2), library.full((2, 2), -3.0))
        return listed, [one.tolist() for one in (result if isinstance(result, tuple) else (result,))]

    return change


def sized(library, module):
    part(library, "graph_manipulation").get_size_of_all_nodes(module, [library.ones(2, 2), library.ones(2, 2)])
    return [tuple(node.size_bytes) for node in module.graph.nodes if node.op != "output"]


def changes(rng):
    numbers = (
        sorted(rng.randrange(3) for _ in range(40)) if rng.random() < 0.7 else [rng.randrange(3) for _ in range(40)]
    )
    yield split(numbers)
    yield split(numbers, keep_original_order=True, keep_original_node_name=True)
    yield split(numbers, keep_original_input_name=False, tuple_return=True, partition_affix="pp")
    yield tagged(numbers)
    yield tagged(numbers, return_tuple=True)
    names = rng.sample(["_operator.add", "torch.mul", "torch.relu", "neg", "_operator.getitem"], 3)
    yield supported(names)
    yield supported(names, allows_single_node_partition=True)
    yield supported(names, allows_single_node_partition=True, skip_horizontal_fusion=True)


def main(graphs):
    rng, different, compared = random.Random(0), 0, 0
    for _ in range(graphs):
        steps = [(rng.choice(KINDS), rng.randrange(9), rng.randrange(9)) for _ in range(rng.randint(1, 9))]
        recipe = steps, [-1 - rng.randrange(3) for _ in range(rng.randint(1, 3))]
        for change in [*changes(rng), sized]:
            found, wanted = (outcome(library, recipe, change) for library in (ours, theirs))
            compared += 1
            if found != wanted:
                different += 1
                if different < 4:
                    print(f"{recipe}\n{change.__qualname__}\n ours   {found}\n theirs {wanted}")
    print(f"{compared} outcomes compared, {different} differ")
    return different


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)))
