"""The command line: `python -m redispatch demo`, `explain`, `version`.

    python -m redispatch explain "add(ones(2, requires_grad=True), 1)"

Read next: demo/story.py, for what the demo shows; dispatch/explain.py and dispatch/trace.py, for what `explain` prints.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import Any

import redispatch


def main(arguments: list[str] | None = None) -> int:
    """Runs one command; returns the exit status: 0, 1 where something is missing or fails, 2 for a wrong command."""
    parser = argparse.ArgumentParser(prog="python -m redispatch", description=redispatch.__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="command")

    demo = commands.add_parser("demo", help="train a classifier on scanned digits through the whole stack")
    demo.add_argument("--epochs", type=positive, default=None, help="how long to train")
    demo.add_argument("--output", type=Path, default=Path("demo-output"), help="folder of the picture")
    demo.set_defaults(run=run_demo)

    explain = commands.add_parser(
        "explain", help="who answers an operator call at each key, and the way it really takes"
    )
    explain.add_argument("expression", help='such as "add(ones(2, requires_grad=True), 1)"')
    explain.set_defaults(run=run_explain)

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=run_version)

    chosen = parser.parse_args(arguments)
    return chosen.run(chosen)


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def run_demo(chosen: argparse.Namespace) -> int:
    from redispatch.demo import MissingExtra, tell  # brings numba in, which the other commands do without

    try:
        tell(chosen.output, **({"epochs": chosen.epochs} if chosen.epochs else {}))
    except MissingExtra as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


def run_version(chosen: argparse.Namespace) -> int:
    print(redispatch.__version__)
    return 0


def run_explain(chosen: argparse.Namespace) -> int:
    try:
        print(explain_expression(chosen.expression))
    except Exception as error:  # whatever the user's expression raises
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def explain_expression(source: str) -> str:
    """Who answers the outermost call (or operator) of an expression at each key, and every hop that it took.

    The expression is evaluated with the names of `redispatch`, which is also known as `rd`; what stands inside the
    outermost call is evaluated first, and not traced.
    """
    names = {**vars(redispatch), "redispatch": redispatch, "rd": redispatch}
    outermost = ast.parse(source.strip(), mode="eval")
    outermost.body = with_children_evaluated(outermost.body, names)
    with redispatch.trace() as hops:
        result = evaluate(outermost, names)
    first = next(iter(hops), None)
    if first is None or first.op is None:
        return f"{source} calls no operator; its value is {result!r}"
    return f"{redispatch.explain(first.op, first.keyset)}\n\n{hops}\n\n{result!r}"


def evaluate(expression: ast.Expression, names: dict[str, Any]) -> Any:
    return eval(compile(ast.fix_missing_locations(expression), "<expression>", "eval"), names)


def with_children_evaluated(node: Any, names: dict[str, Any]) -> Any:
    """The node with each expression right below it replaced by a name, bound in `names` to its value."""
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(node, field, [replaced(item, names) for item in value])
        else:
            setattr(node, field, replaced(value, names))
    return node


def replaced(node: Any, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.keyword | ast.Starred | ast.Slice | ast.Tuple):
        return with_children_evaluated(node, names)  # these have no value of their own outside their place
    if not isinstance(node, ast.expr):
        return node
    name = f"__value{len(names)}"
    names[name] = evaluate(ast.Expression(node), names)
    return ast.Name(name, ast.Load())


if __name__ == "__main__":
    sys.exit(main())
