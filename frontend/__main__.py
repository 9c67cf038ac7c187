"""The command line: `python -m redispatch demo`, `explain`, `trace`, `graph`, `compile`, `learn`, `selective`,
`version`.

    python -m redispatch explain "add(ones(2, requires_grad=True), 1)"
    python -m redispatch trace --html trace.html program.py what the program is given
    python -m redispatch trace -m package.module
    python -m redispatch compile --html stages.html program.py
    python -m redispatch graph "lambda x, w: (x @ w).cos().sum()" "ones(2, 3)" "ones(3, 4, requires_grad=True)"

Read next: frontend/demo/story.py, for what the demo shows; dispatch/inspection/explain.py and
dispatch/inspection/trace.py, for what the others print.
"""

from __future__ import annotations

import argparse
import ast
import linecache
import runpy
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

import redispatch
from redispatch.dispatch import OpOverload, OpOverloadPacket
from redispatch.learn import command


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

    trace = commands.add_parser(
        "trace", help="run a program and record every hop that its calls take", allow_abbrev=False
    )
    trace.add_argument("--html", type=Path, metavar="FILE", help="write a page to step through the trace")
    trace.add_argument("--chrome", type=Path, metavar="FILE", help="write what Perfetto and chrome://tracing open")
    trace.add_argument("--places", action="store_true", help="print the file and line of each kernel, too")
    trace.add_argument("--times", action="store_true", help="print how long each hop took, too")
    trace.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` does, and no file")
    trace.add_argument("program", nargs="?", help="a Python program")
    trace.add_argument("arguments", nargs="*", help="what the program is given; after --, all of it")
    trace.set_defaults(run=run_trace)

    graph = commands.add_parser("graph", help="the graphs that a function becomes, and what each pass changes")
    graph.add_argument("--html", type=Path, metavar="FILE", help="write a page to step through the stages")
    graph.add_argument("--svg", type=Path, metavar="FILE", help="write a picture of the first: forward and backward")
    graph.add_argument("function", help='such as "lambda x, w: (x @ w).cos().sum()"')
    graph.add_argument("values", nargs="*", help='its arguments, such as "ones(2, 3, requires_grad=True)"')
    graph.set_defaults(run=run_graph)

    compiled = commands.add_parser("compile", help="the stages of the graphs that a program compiles, down to assembly")
    compiled.add_argument("--html", type=Path, metavar="FILE", help="write a page to step through the stages")
    compiled.add_argument("program", help="a Python program")
    compiled.add_argument("arguments", nargs="*", help="what the program is given; after --, all of it")
    compiled.set_defaults(run=run_compile, module=None)

    command.add(commands)

    selective = commands.add_parser("selective", help="list the operators of a program, or cut a wheel of no more")
    selective.add_argument("what", choices=("trace", "cut"), help="write such a list, or the wheel of one")
    selective.add_argument("list", help="the file of the list")
    selective.add_argument("--dtypes", action="store_true", help="trace: list the dtypes, too")
    selective.add_argument("--output", type=Path, default=Path("dist"), help="cut: folder of the wheel")
    selective.add_argument("program", help="a Python program")
    selective.add_argument("arguments", nargs="*", help="what the program is given; after --, all of it")
    selective.set_defaults(run=run_selective, module=None)

    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=run_version)

    given = list(sys.argv[1:] if arguments is None else arguments)
    end = given.index("--") if "--" in given else len(given)
    chosen, theirs = parser.parse_known_args(given[:end])
    theirs += given[end + 1 :]
    if theirs and not hasattr(chosen, "arguments"):
        parser.error(f"unrecognized arguments: {' '.join(theirs)}")
    if hasattr(chosen, "arguments"):
        if chosen.module is not None and chosen.program is not None:
            chosen.arguments.insert(0, chosen.program)  # the first of what the module is given
        if chosen.module is None and chosen.program is None:
            trace.error("name a program, or a module after -m")
        chosen.arguments += theirs
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


def run_selective(chosen: argparse.Namespace) -> int:
    from redispatch import selective  # here, because the other commands do without

    if chosen.what == "cut":
        print(selective.cut(chosen.list, chosen.program, *chosen.arguments, folder=chosen.output))
        return 0
    sys.argv = [chosen.program, *chosen.arguments]
    selective.trace(runpy.run_path, chosen.program, None, "__main__").write(chosen.list, chosen.dtypes)
    return 0


def run_trace(chosen: argparse.Namespace) -> int:
    return run_within(redispatch.trace, show_trace, chosen)


def run_compile(chosen: argparse.Namespace) -> int:
    from redispatch._inductor import stages  # here, because the other commands do without

    return run_within(stages.watched, partial(show_compiled, stages), chosen)


def run_within(region: Callable[[], Any], show: Callable[[Any, argparse.Namespace], None], chosen: Any) -> int:
    """Runs a program as `python program arguments` would, in a region; what that saw is shown however it ends."""
    if chosen.module is None and not Path(chosen.program).is_file():
        print(f"there is no program {chosen.program}", file=sys.stderr)
        return 1
    before = sys.argv, sys.path.copy()
    sys.argv = [chosen.module or chosen.program, *chosen.arguments]
    sys.path.insert(0, str(Path.cwd() if chosen.module else Path(chosen.program).resolve().parent))
    seen = failed = None
    try:
        with region() as seen:
            if chosen.module:
                runpy.run_module(chosen.module, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(chosen.program, run_name="__main__")
    except Exception as error:
        failed = error
    finally:
        sys.argv, sys.path[:] = before
        if seen is not None:
            show(seen, chosen)
    if failed is None:
        return 0
    failed.__traceback__ = from_program(failed.__traceback__)
    sys.excepthook(type(failed), failed, failed.__traceback__)
    return 1


def from_program(traceback: TracebackType | None) -> TracebackType | None:
    """The part of a traceback that the program's own would be: without the frames that ran it."""
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (
        __file__,
        runpy.__file__,
        "<frozen runpy>",
    ):
        traceback = traceback.tb_next
    return traceback


def show_trace(hops: redispatch.Hop, chosen: argparse.Namespace) -> None:
    """Writes the files that were asked for; prints the tree where none was."""
    count = sum(1 for _ in hops.walk())
    if not count:
        print("the program called no operator", file=sys.stderr)
        return
    for path, write in ((chosen.html, hops.html), (chosen.chrome, hops.chrome)):
        if path is not None:
            write(path)
            print(f"{path}: {count} hops", file=sys.stderr)
    if chosen.html is None and chosen.chrome is None:
        print(hops.text(places=chosen.places, times=chosen.times))


def show_compiled(stages: Any, graphs: list[Any], chosen: argparse.Namespace) -> None:
    """Writes the page that was asked for, or prints the stages."""
    if not graphs:
        print(
            "the program compiled no graph; `redispatch.compile`, or `redispatch._inductor.compile_fx_inner`, do",
            file=sys.stderr,
        )
        return
    found = stages.stages_of(graphs)
    if chosen.html is None:
        print(stages.text(found))
        return
    stages.page(found, chosen.program, chosen.html)
    print(f"{chosen.html}: {len(found)} stages", file=sys.stderr)


def run_explain(chosen: argparse.Namespace) -> int:
    try:
        print(explain_expression(chosen.expression))
    except Exception as error:  # whatever the user's expression raises
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


def run_graph(chosen: argparse.Namespace) -> int:
    from redispatch._functorch.stages import stages_of  # here, because the other commands do without

    try:
        names = known() | {"__name__": "program"}  # whose lines are the user's
        linecache.cache["<function>"] = len(chosen.function), None, [chosen.function], "<function>"
        function = eval(compile(chosen.function, "<function>", "eval"), names)
        values = [eval(one, names) for one in chosen.values]
        stages = stages_of(function, *values, title=chosen.function)
    except Exception as error:  # whatever the user's function raises
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1
    if chosen.html is not None:
        stages.html(chosen.html)
    if chosen.svg is not None:
        stages[0].picture.save(chosen.svg)
    for path in filter(None, (chosen.html, chosen.svg)):
        print(f"{path}: {len(stages)} stages" if path is chosen.html else f"{path}: {stages[0].name}", file=sys.stderr)
    if chosen.html is None and chosen.svg is None:
        print(stages)
    return 0


def known() -> dict[str, Any]:
    """Returns the names that expressions may use: those of `redispatch`, also those that are imported late."""
    names = {name: getattr(redispatch, name) for name in dir(redispatch)}
    return names | {
        "redispatch": redispatch,
        "rd": redispatch,
        "aten": redispatch.ops.aten,
        "F": redispatch.nn.functional,
    }


def explain_expression(source: str) -> str:
    """Shows which kernel answers the outermost call (or operator) of an expression at each key, and every hop of the
    call.

    The expression is evaluated with the names of `redispatch`, which is also known as `rd`, and with `aten` and `F`;
    what stands inside the outermost call is evaluated first, and not traced. An operator alone is explained as it is.
    """
    names = known()
    outermost = ast.parse(source.strip(), mode="eval")
    outermost.body = with_children_evaluated(outermost.body, names)
    with redispatch.trace() as hops:
        result = evaluate(outermost, names)
    first = next(iter(hops), None)
    if first is None and isinstance(result, OpOverload | OpOverloadPacket):
        return redispatch.explain(result)
    if first is None or first.op is None:
        return f"{source} calls no operator; its value is {result!r}"
    if not isinstance(first.op, OpOverload):
        return f"{hops}\n\n{result!r}"  # a higher-order operator: it has no table of keys
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
