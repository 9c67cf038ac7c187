"""How long compiled programs take to be ready, in CPU seconds: first call, second process; beside `torch.compile`.

    .venv-torch/bin/python tests/bench/cold.py [chain mlp gpt ...]

Each figure is of a process of its own. The graph is there already, and what eager execution keeps on disk; "cold" is
without any compiled loop, "again" with those that "cold" has kept. torch.compile's figures are of its first call, which
traces, too, with its caches empty, and of the first call of a second process; its compilers are child processes, and
are counted.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = ("chain", "softmax", "layer_norm", "cross_entropy", "mlp", "cnn", "gpt")


def seconds() -> float:
    """CPU time of this process and of children that have ended."""
    facts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in facts)


def ours(name: str) -> str:
    """The seconds from a graph to its function, and how many kernels that has."""
    import compiled

    import redispatch as rd
    from redispatch._inductor import compile_fx_inner
    from redispatch.fx.experimental.proxy_tensor import make_fx

    found: list = []
    compiled.compiled = lambda t, function, *inputs: found.append((function, inputs))
    getattr(compiled, name)(rd)
    ((function, inputs),) = found
    module = make_fx(function)(*inputs)
    compile_fx_inner(make_fx(lambda x: x + 1)(rd.ones(3)), [rd.ones(3)])(rd.ones(3))  # imports, LLVM's start
    begin = seconds()
    graph = compile_fx_inner(module, inputs)
    graph.run = graph.made()
    return f"{seconds() - begin:.3f} {len(graph.kernels())}"


def theirs(name: str) -> str:
    """The seconds of torch.compile's first call."""
    import compiled
    import torch

    torch.set_num_threads(1)
    made = getattr(compiled, name)(torch)
    begin = seconds()
    made()
    return f"{seconds() - begin:.3f} 0"


def measured(name: str, whose: str, folder: str) -> tuple[float, int]:
    """The figure of a new process."""
    environment = os.environ | {
        "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHINDUCTOR_COMPILE_THREADS": "1", "REDISPATCH_CACHE_DIR": folder,
        "REDISPATCH_QUIET": "1",
    }  # fmt: skip
    command = [sys.executable, __file__, whose, name]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    figure, kernels = done.stdout.split()[-2:]
    return float(figure), int(kernels)


def main(names: list[str]) -> None:
    print(f"{'CPU seconds':16} {'kernels':>7} {'cold':>7} {'again':>7}   torch.compile {'cold':>7} {'again':>7}")
    for name in names or PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            _, kernels = measured(name, "ours", folder)  # what eager execution keeps
            for one in Path(folder).glob("*.kernel"):
                one.unlink()
            cold, again = (min(measured(name, "ours", folder)[0] for _ in range(k)) for k in (1, 3))
            first, second = (measured(name, "theirs", folder)[0] for _ in range(2))
        print(f"{name:16} {kernels:7} {cold:7.3f} {again:7.3f}   {'':13} {first:7.1f} {second:7.2f}", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    if sys.argv[1:2] in (["ours"], ["theirs"]):
        print({"ours": ours, "theirs": theirs}[sys.argv[1]](sys.argv[2]))
    else:
        main(sys.argv[1:])
