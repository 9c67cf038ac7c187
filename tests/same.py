"""Says whether anything changed for users: names, results, emitted code, errors, the kit's rows; and shows timings.

    python tests/same.py [PART...]             compare with the records in tests/same/; exits with 1 on a difference
    python tests/same.py record [PART...]      write the records anew
    python tests/same.py --kit DIR [PART...]   with the conformance kit in DIR (or SAME_KIT=DIR), else skipped

For a restructuring: files move, modules are split, code is derived instead of written, and none of it may show. Each
part is collected in a process of its own: a dictionary of what a user sees, key -> value. When it is recorded, it is
collected twice, with different hash seeds, and keys that differ between the two are left out, and listed. What may move
is taken out of texts before they are compared: addresses, files with line numbers. `bench` only informs.

Only public names are used here. tests/same/modules.txt lists the modules whose names are promised, errors.txt the calls
that fail. `record names` wants torch, which says which names are PyTorch's; without it those marked before stay.
"""

import contextlib
import difflib
import importlib
import importlib.util
import inspect
import json
import lzma
import math
import os
import re
import subprocess
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

RECORDS = Path(__file__).resolve().parent / "same"
SHOWN = 30  # differences of a part that are printed
MISSING = object()
PARTS = {}


def part(function):
    PARTS[function.__name__] = function
    return function


def steady(text):
    """A text without what may move: addresses, files and their lines, folders of modules."""
    text = re.sub(r" at 0x[0-9a-f]+", "", str(text))
    text = re.sub(r"[\w./~<>-]+\.py(:\d+|\", line \d+)?", "FILE", text)
    return re.sub(r"\bredispatch(\.[a-z_]\w*)+\.(?=[A-Za-z_]\w*'?>)", "redispatch.", text)


def failure(error):
    return f"{type(error).__name__}: {steady(error)}"


# names ----------------------------------------------------------------------------------------------------------------


def module_or_none(path):
    """The module or whatever else stands at a path, as `import` or attributes find it."""
    try:
        return importlib.import_module(path)
    except ImportError:
        found = importlib.import_module(path.split(".")[0])
        for name in path.split(".")[1:]:
            found = getattr(found, name, None)
        return found


def signature(value):
    """Parameters with their defaults, without annotations: code that is derived may carry others."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    empty = inspect.Parameter.empty
    bare = [p.replace(annotation=empty) for p in found.parameters.values()]
    try:
        return steady(found.replace(parameters=bare, return_annotation=empty))
    except ValueError:  # a default before a parameter without one, as a partial has it
        return steady(f"({', '.join(map(str, bare))})")


def described(value):
    """Kind, and signature or value, of what a name stands for."""
    if isinstance(value, types.ModuleType):
        return "module"
    if isinstance(value, type):
        return f"class {signature(value)}"
    if callable(value):
        home = getattr(value, "__module__", None) or ""  # as pickles name it, where it says PyTorch
        return f"function {signature(value)}{f' of {home}' if home.startswith('torch') else ''}"
    if isinstance(value, (bool, int, float, str, type(None))) and len(str(value)) < 60:
        return f"value {value!r}"
    return f"value of {type(value).__name__}"


def attributes(cls):
    """name -> description of a class's public attributes and special methods, without those of its well-known bases."""
    import redispatch as rd

    shared = (rd.Tensor, rd.nn.Module, rd.optim.Optimizer, rd.distributions.Distribution)
    bases = [base for base in cls.__mro__[1:] if base in shared or not is_ours(base)]
    for base in bases:
        if base in shared:
            yield f"is a {base.__name__}", "class"
    left = {"__module__", "__dict__", "__weakref__", "__annotations__", "__abstractmethods__", "__doc__", "__slots__"}
    for name in sorted(set(dir(cls)) - left):
        value = inspect.getattr_static(cls, name, None)
        hidden = name.startswith("_") and not name.endswith("__")
        if not hidden and all(value is not inspect.getattr_static(base, name, MISSING) for base in bases):
            plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            yield name, described(plain) if callable(plain) else "attribute"


def belongs(name, module):
    """Whether a name is a module's own, not a helper that it imports: listed, defined there, or at a package's door."""
    value = getattr(module, name, None)
    if name in getattr(module, "__all__", ()):
        return True
    if isinstance(value, types.ModuleType) or name in ("TYPE_CHECKING", "annotations"):
        return getattr(value, "__name__", "") in MODULES
    return hasattr(module, "__path__") or getattr(value, "__module__", module.__name__) == module.__name__


def is_ours(value):
    """Whether something is the library's, and no module that is not promised."""
    if isinstance(value, types.ModuleType):
        return value.__name__ in MODULES
    home = getattr(value, "__module__", None) or type(value).__module__
    return home.split(".")[0] in ("redispatch", "torch") or not callable(value)


ROWS = [line.split() for line in (RECORDS / "modules.txt").read_text().splitlines()]
MODULES = {path: promised for path, *promised in ROWS}  # and names that the documentation imports from there


@part
def names():
    """Import paths with signatures, attributes of classes, operators with schemas and tags."""
    import redispatch

    try:
        import torch
    except ImportError:
        torch = None
    marked = recorded("names")  # among them what was PyTorch's when torch was there
    found = {}
    for path, promised in MODULES.items():
        module = module_or_none(path)
        if module is None:
            continue
        found[path] = described(module)
        listed = {*getattr(module, "__all__", ()), *promised}
        theirs = set()
        if torch is not None:
            with contextlib.suppress(ImportError, AttributeError):
                other = module_or_none("torch" + path.removeprefix("redispatch"))
                theirs = {name for name in dir(other) if not name.startswith("__") and belongs(name, other)}
        prefix = path + "."
        known = {name[len(prefix) :] for name in marked if name.startswith(prefix) and "." not in name[len(prefix) :]}
        for name in sorted({*dir(module), *listed, *theirs, *known}):
            try:
                value = getattr(module, name)
            except AttributeError:
                continue
            # of a file that lists no names, and is not PyTorch's, the classes are for users
            shown = hasattr(module, "__path__") or isinstance(value, type)
            own = (
                shown
                and not hasattr(module, "__all__")
                and not name.startswith("_")
                and is_ours(value)
                and belongs(name, module)
            )
            if not (own or name in listed or name in known or (name in theirs and is_ours(value))):
                continue
            found[prefix + name] = described(value)
            if isinstance(value, type) and is_ours(value):
                for attribute, text in attributes(value):
                    found[f"{prefix}{name}: {attribute}"] = text
    for space in dir(redispatch.ops):
        for packet in dir(getattr(redispatch.ops, space)):
            op = getattr(getattr(redispatch.ops, space), packet)
            for overload in op.overloads():
                one = getattr(op, overload)
                tags = " ".join(sorted(tag.name for tag in one.tags))
                found[f"operator {space}.{packet}.{overload}"] = f"{one._schema}  [{tags}]"
    return found


# operators ------------------------------------------------------------------------------------------------------------


def numbers(x):
    """A few numbers that stand for a tensor's values, wherever they lie in it: see `near`."""
    import numpy as np

    x = x.detach().resolve_conj().resolve_neg()
    values = (x.float() if str(x.dtype).endswith(("float16",)) else x).numpy().reshape(-1)
    values = np.concatenate([values.real, values.imag]) if np.iscomplexobj(values) else values.astype(np.float64)
    finite = np.where(np.isfinite(values), values, 0)
    weights = 1 + np.cos(np.arange(values.size) * 0.7)  # so that two values that change places are seen
    odd = [np.isnan(values).sum(), np.isposinf(values).sum(), np.isneginf(values).sum()]
    size = max(values.size, 1)
    sums = [np.abs(finite).sum() / size, finite.sum() / size, (finite * weights).sum() / size]
    return [float(f"{float(v):.7g}") for v in [*sums, *finite[:4], *finite[-1:], *odd]]


def summary(value):
    """The user's sight of a result: metadata and numbers of tensors, and the structure around them."""
    import redispatch as rd

    if isinstance(value, rd.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        known = f"{type(value).__name__} {dtype}{list(value.shape)} strides {list(value.stride())} {value.device}"
        grad_fn = type(value.grad_fn).__name__ if value.grad_fn is not None else ""
        return [f"{known} {grad_fn}".strip(), [] if value.device.type == "meta" else numbers(value)]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(summary, value)]
    return float(value) if isinstance(value, float) else steady(repr(value))


def cotangent(x):
    import numpy as np

    import redispatch as rd

    values = rd.from_numpy(1 + 0.5 * np.cos(np.arange(math.prod(x.shape), dtype=np.float64)).reshape(tuple(x.shape)))
    return values.to(x.dtype)


def tried(info, sample, op):
    """Result, arguments that were written to, and gradients; or the error."""
    import redispatch as rd
    from redispatch.utils import _pytree as pytree

    seen = {}
    try:
        rd.manual_seed(0)
        result = op(*sample.arguments, **sample.kwargs)
        seen["result"] = summary(result)
        if op._schema.is_mutable:
            seen["arguments"] = summary(sample.tensors())
        outs = [x for x in pytree.tree_leaves(result) if isinstance(x, rd.Tensor) and x.requires_grad]
        ins = [x for x in sample.tensors() if x.requires_grad and x.is_leaf]
        if outs and ins and not op._schema.is_mutable:
            gradients = rd.autograd.grad(outs, ins, [cotangent(x) for x in outs], allow_unused=True)
            seen["gradients"] = summary(gradients)
    except Exception as error:
        seen["error"] = failure(error)
    return seen


@part
def operators():
    """The table of operators: results and gradients of two samples, the in-place form, calls that must fail."""
    from redispatch.testing.op_db import op_db

    found = {}
    for info in op_db:
        samples = info.sample_inputs(info.main_dtype, requires_grad=info.gradients and not info.mutates)
        chosen = {0: samples[0], len(samples) - 1: samples[-1]} if samples else {}
        for i, sample in chosen.items():
            key = f"{info.op}, sample {i}"
            if key in found:  # several entries for an operator
                key = f"{key}, again with {len(samples)} samples"
            found[f"samples of {key}"] = [summary(sample.arguments), summary(list(sample.kwargs.items()))]
            found[key] = tried(info, sample, info.op)
        if info.inplace is not None and "inplace" not in info.skips:
            plain = info.sample_inputs(info.main_dtype)[0]
            found[f"{info.inplace}, for {info.op}"] = tried(info, plain, info.inplace)
        for i, bad in enumerate(info.error_inputs()):
            found[f"{info.op}, call {i} that must fail"] = tried(
                info, bad.sample, info.inplace if bad.form == "inplace" else info.op
            )
    return found


def near(old, new):
    """Whether two values are the same but for roundings of numbers: a 10,000th of the largest beside them."""
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return False
        if old and all(isinstance(v, (int, float)) for v in old + new):
            largest = max(map(abs, [v for v in old if math.isfinite(v)] or [0]))
            return all(
                a == b or abs(a - b) <= 1e-4 * largest + 1e-9 or a != a and b != b
                for a, b in zip(old, new, strict=True)
            )
        return all(map(near, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(near(old[k], new[k]) for k in old)
    if isinstance(old, (int, float)) and isinstance(new, (int, float)):
        return near([old], [new])
    return old == new


# sources --------------------------------------------------------------------------------------------------------------

EMITTED = """
    add.Tensor add_.Tensor add.out sub.Tensor mul.Tensor mul_.Tensor div.Tensor pow.Tensor_Scalar exp sigmoid relu relu_
    gelu where.self eq.Tensor clamp neg sum sum.dim_IntList mean.dim var.correction max.dim argmax cumsum sort mm bmm
    addmm convolution native_layer_norm native_batch_norm _softmax _log_softmax nll_loss_forward embedding view
    transpose.int select.int slice.Tensor expand split.Tensor detach clone copy_ cat stack index.Tensor index_put_
    gather scatter.src zeros ones_like normal_ bernoulli linalg_solve_ex max_pool2d_with_indices square matmul linear
    transpose_ squeeze_ fill_.Scalar
"""


@part
def sources():
    """The code that is emitted for operators, in several states and for several kinds of tensors."""
    import redispatch as rd
    from redispatch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @rd.library.custom_op("same::doubled", mutates_args=())
    def doubled(x: rd.Tensor) -> rd.Tensor:
        return x * 2

    @rd.library.custom_op("same::written", mutates_args={"x"})
    def written(x: rd.Tensor) -> None:
        x.mul_(2)

    doubled.register_autograd(lambda ctx, grad: grad * 2)
    x = rd.ones(2, 3)
    from redispatch.subclasses.two_tensor import TwoTensor

    cases = {
        "": (contextlib.nullcontext, x),
        " without grad": (rd.no_grad, x),
        " in inference mode": (rd.inference_mode, x),
        " under a mode": (Mode, x),
        " under autocast": (lambda: rd.autocast("cpu", dtype=rd.bfloat16), x),
        " of meta tensors": (contextlib.nullcontext, rd.ones(2, 3, device="meta")),
        " of a subclass": (contextlib.nullcontext, TwoTensor(x, x)),
        " of a conjugate": (contextlib.nullcontext, rd.ones(2, dtype=rd.complex64).conj()),
    }
    found = {}
    named = [name.partition(".") for name in EMITTED.split()]
    ops = [getattr(getattr(rd.ops.aten, name), overload or "default") for name, _, overload in named]
    for i, op in enumerate([*ops, rd.ops.same.doubled.default, rd.ops.same.written.default]):
        for j, (case, (region, tensor)) in enumerate(cases.items()):
            if j in (0, 1) or (i + j) % 4 == 0 or i < 3:  # all states of a few operators, some states of all
                with region():
                    try:
                        found[f"{op}{case}"] = steady(op.source(tensor))
                    except Exception as error:
                        found[f"{op}{case}"] = failure(error)
    return found


# errors, the kit ------------------------------------------------------------------------------------------------------


@part
def errors():
    """The errors of wrong calls: class and message. A line of errors.txt is a program whose last statement fails."""
    import redispatch as rd

    lines = [line for line in (RECORDS / "errors.txt").read_text().splitlines() if line and line[0] != "#"]
    x = rd.ones(2, 3)
    scope = {"rd": rd, "nn": rd.nn, "F": rd.nn.functional, "aten": rd.ops.aten, "Library": rd.library.Library, "x": x}
    scope |= {"i": x.long(), "g": rd.ones(2, 3, requires_grad=True), "c": rd.ones(2) * 1j}
    return {line: message(line, scope) for line in lines}


def message(program, scope):
    """The error of a program, in a process of its own: it may leave a mode behind, or an operator."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        text = "no error"
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            exec(compile(program.replace("; ", "\n"), "<call>", "exec"), scope)
        except BaseException as error:
            text = failure(error)
        os.write(send, text.encode()[:60_000])
        os._exit(0)
    os.close(send)
    with open(receive) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text


@part
def kit():
    """The rows of the conformance kit: how many of their checks hold."""
    run = Path(os.environ["SAME_KIT"]).resolve() / "run.py"
    output = subprocess.run([sys.executable, run, "-v"], capture_output=True, text=True, cwd=run.parent).stdout
    failed = re.findall(r"^  (\w+(?:\.\w+)?): ", output, re.M)
    rows = re.findall(r"^(\w+) (\d+/\d+) ", output, re.M)
    return dict(rows) | {f"check {check}": "fails" for check in failed}


# bench ----------------------------------------------------------------------------------------------------------------


def in_a_new_process(program):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"REDISPATCH_QUIET": "1"})
    return time.perf_counter() - start


@part
def bench():
    """Seconds of a call: the least of several rounds, in each of which everything has its turn."""
    import redispatch as rd
    from redispatch.subclasses.two_tensor import TwoTensor
    from redispatch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    @rd.library.custom_op("same::timed", mutates_args=())
    def timed(x: rd.Tensor) -> rd.Tensor:
        return x.clone()

    x, y = rd.ones(10), rd.ones(10)
    g = rd.ones(10, requires_grad=True)
    rows, million, square = rd.rand(1000, 100), rd.rand(1_000_000), rd.rand(16, 16)
    two, weight = TwoTensor(x, y), rd.nn.Linear(10, 10)
    doubled = rd.vmap(lambda v: v * 2)

    def under_mode():
        with Mode():
            for _ in range(10):
                rd.add(x, y)

    calls = {
        "add": (lambda: rd.add(x, y), 2000),
        "add_": (lambda: x.add_(y), 2000),
        "mul and backward": (lambda: (g * y).sum().backward(), 300),
        "sum": (lambda: x.sum(), 2000),
        "view": (lambda: x.view(2, 5), 2000),
        "ten adds under a mode": (under_mode, 50),
        "add of a wrapper": (lambda: two + two, 200),
        "custom operator": (lambda: timed(x), 300),
        "vmap": (lambda: doubled(square), 100),
        "matmul of 16 x 16": (lambda: square @ square, 1000),
        "Linear": (lambda: weight(x), 500),
        "softmax of 1,000 rows": (lambda: rows.softmax(-1), 30),
        "exp of a million": (lambda: million.exp(), 5),
    }
    least = dict.fromkeys(calls, math.inf)
    for _ in range(12):
        for name, (call, count) in calls.items():
            call()
            start = time.perf_counter()
            for _ in range(count):
                call()
            least[name] = min(least[name], (time.perf_counter() - start) / count)
    least["import"] = min(in_a_new_process("import redispatch") for _ in range(4))
    first = "import redispatch as rd; print(end=str((rd.ones(3) + 1).sum())[:0])"
    least["first result of a new process"] = min(in_a_new_process(first) for _ in range(4))
    return {name: float(f"{seconds:.3g}") for name, seconds in least.items()}


def show_timings(old, new):
    for name in new:
        ratio = new[name] / old[name] if name in old else math.nan
        note = "  <- slower" if ratio > 1.3 else ""
        print(f"    {name:32} {old.get(name, math.nan) * 1e6:10.1f} -> {new[name] * 1e6:10.1f} us  {ratio:5.2f}{note}")
    print("bench: for information; the records are of another run, perhaps of another machine")


# Recording and comparing ----------------------------------------------------------------------------------------------


def recorded(name):
    file = RECORDS / f"{name}.json.xz"
    return json.loads(lzma.decompress(file.read_bytes())) if file.exists() else {}


def collect(name, seed):
    """A part's dictionary, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "part.json"
        environment = os.environ | {"PYTHONHASHSEED": str(seed), "REDISPATCH_QUIET": "1"}
        subprocess.run([sys.executable, __file__, "collect", name, file], check=True, env=environment)
        return json.loads(file.read_text())


def write(name, found):
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(found[key])}" for key in sorted(found))
    (RECORDS / f"{name}.json.xz").write_bytes(lzma.compress(f"{{\n{lines}\n}}\n".encode()))


def record(name):
    if name == "names" and importlib.util.find_spec("torch"):
        write(name, {})  # torch says anew which names are PyTorch's
    found = collect(name, 1)
    if name not in ("bench", "kit"):
        again = collect(name, 2)
        unsteady = [key for key in found if not near(found[key], again.get(key))]
        for key in unsteady:
            print(f"{name}: left out, two runs differ: {key}")
            del found[key]
    write(name, found)
    print(f"{name}: {len(found):,} recorded")


def difference(old, new):
    """Lines that show how two values differ."""
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        return list(difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "now", lineterm="", n=1))[:40]
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            f"{key}: {line}"
            for key in sorted({*old, *new})
            if not near(old.get(key), new.get(key))
            for line in difference(old.get(key), new.get(key))
        ]
    return [f"before {old}"[:400], f"now    {new}"[:400]]


def check(name):
    """Whether a part is as recorded; prints how it is not."""
    old, new = recorded(name), collect(name, 0)
    if name == "bench":
        show_timings(old, new)
        return True
    missing = [key for key in old if key not in new]
    changed = [key for key in old if key in new and not near(old[key], new[key])]
    extra = [key for key in new if key not in old]
    samples = {key.removeprefix("samples of ") for key in changed if key.startswith("samples of ")}
    alike = {}  # the same difference in many places is one
    for key in changed:
        text = difference(old[key], new[key])
        if key in samples:
            text = ["differs, but so do its samples"]
        alike.setdefault("\n".join("      " + line for line in text), []).append(key)
    for key in missing[:SHOWN]:
        print(f"    {key}: missing; it was {str(old[key])[:200]}")
    for text, keys in list(alike.items())[:SHOWN]:
        print(f"    {', '.join(keys[:4])}{f' and {len(keys) - 4:,} more' if len(keys) > 4 else ''}\n{text}")
    if extra:
        print(f"    new, for information: {', '.join(extra[:8])}{' ...' if len(extra) > 8 else ''} ({len(extra):,})")
    same = len(old) - len(missing) - len(changed)
    parts = [f"{len(missing):,} missing"] * bool(missing) + [f"{len(changed):,} changed"] * bool(changed)
    print(f"{name}: {same:,} the same{''.join(', ' + text for text in parts)}")
    return not missing and not changed


def main(arguments):
    if arguments[:1] == ["collect"]:
        warnings.simplefilter("ignore")
        Path(arguments[2]).write_text(json.dumps(PARTS[arguments[1]]()))
        return 0
    if "--kit" in arguments:
        place = arguments.index("--kit")
        os.environ["SAME_KIT"] = arguments[place + 1]
        del arguments[place : place + 2]
    act = check
    if arguments[:1] == ["record"]:
        act = record
        del arguments[0]
    unknown = set(arguments) - set(PARTS)
    if unknown:
        sys.exit(f"same.py: no part is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    same = True
    for name in arguments or PARTS:
        if name == "kit" and "SAME_KIT" not in os.environ:
            print("kit: skipped: no kit given")
            continue
        start = time.perf_counter()
        try:
            same = act(name) is not False and same
        except subprocess.CalledProcessError as problem:
            print(f"{name}: stopped, exit code {problem.returncode}; its traceback is above")
            same = False
        print(f"    ({time.perf_counter() - start:.0f} s)", flush=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
