"""Random programs of registrations by six libraries, and what is seen of each: of PyTorch, or of this library.

A program makes libraries of all kinds, defines, implements, calls and destroys, in any order. `outcome` runs it and
returns what each step gave and what every listing, table and call says at the end; `digest` makes a line of that, which
interleavings.txt has of PyTorch 2.13. tests/parity/registrations.py makes that file, and compares step by step.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path

RECORDED = Path(__file__).with_suffix(".txt")
KEYS = """
    CPU CPU Meta CUDA XLA FPGA Autograd AutogradCPU AutogradOther CompositeImplicitAutograd CompositeExplicitAutograd
    CompositeExplicitAutogradNonFunctional ADInplaceOrView AutocastCPU Functionalize BackendSelect QuantizedCPU
""".split()
SCHEMAS = [
    *["f(Tensor x) -> Tensor", "f(Tensor x) -> Tensor", "f.two(Tensor x, Tensor y) -> Tensor"],
    *["g(Tensor x, int n=1) -> Tensor", "h(Tensor(a!) x) -> Tensor(a!)", "g.s(Tensor x, str s) -> Tensor"],
    *["f(Foo x) -> Tensor", "other::f(Tensor x) -> Tensor", "f(Tensor x -> Tensor"],
]
NAMES = {"f": 1, "f.two": 2, "g": 1, "h": 1, "g.s": 1}  # each with the number of its tensors
STALE = "PyTorch's table is stale"  # which it finds itself, in about one program of a hundred
# what follows these is said in other words here, or only by one of the two
SHORTENED = (
    *(" Exception raised from", "backend. ", " Please see", "   you passed", " Available functions", " here:"),
    *("should have been short", " The former one", " Common valid", " Usual ones"),
)


def words(text):
    """Returns a message or dump without places and without what differs by intention."""
    text = str(text).replace("\n", " ").replace("redispatch", "torch")
    text = re.sub(r"(/[^ :,]*|<[^>]*>|[\w.]+\.(?:py|cpp|h)):\d+", "PLACE", text)
    text = text.removeprefix('0 INTERNAL ASSERT FAILED at "PLACE, please report a bug to PyTorch. ')
    for end in SHORTENED:
        text = text.split(end)[0]
    return STALE if "_equalsBoxedAndUnboxed" in text else text.strip(" .")


def tried(act):
    """Returns what an action gives, or its error by class and words."""
    try:
        return act()
    except Exception as error:
        kind = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")
        return f"{kind}: {words(error)}"


def outcome(torch, seed):
    """Runs the program of a seed; returns its steps, and what is seen after them and after all is destroyed."""
    program = Program(torch, seed)
    steps = [program.step(random.Random(f"{seed}.{index}")) for index in range(6 + seed % 25)]
    end = program.seen()
    program.rng.shuffle(program.libraries)
    while program.libraries:
        library = program.libraries.pop()
        if library is not None and program.rng.random() < 0.5:
            library._destroy()
        del library
    return {"steps": steps, "end": end, "after": program.seen()}


class Program:
    """Six libraries of one namespace, and what has run."""

    def __init__(self, torch, seed):
        self.torch, self.ns, self.rng = torch, f"random{seed}", random.Random(seed)
        self.libraries, self.ran, self.kernels = [None] * 6, [], 0

    def step(self, rng):
        index, act = rng.randrange(6), rng.choices(["make", "define", "impl", "destroy", "call"], [3, 5, 8, 2, 2])[0]
        if self.libraries[index] is None and act in ("define", "impl", "destroy"):
            act = "make"
        said = tried(lambda: getattr(self, act)(rng, index))
        return [act, index, said, list(self.ran)]

    def make(self, rng, index):
        kind = rng.choice(["DEF", "FRAGMENT", "FRAGMENT", "IMPL"])
        key = rng.choice(KEYS) if kind == "IMPL" and rng.random() < 0.3 else ""
        self.libraries[index] = None
        self.libraries[index] = self.torch.library.Library(self.ns, kind, key)

    def define(self, rng, index):
        return self.libraries[index].define(rng.choice(SCHEMAS))

    def impl(self, rng, index):
        self.kernels += 1
        number, how, key, options = self.kernels, rng.random(), rng.choice([*KEYS, ""]), {}
        if how < 0.1:
            kernel = self.torch.library.fallthrough_kernel
        elif how < 0.9:
            kernel = lambda x, *rest, **more: (self.ran.append(number), x)[1]  # one line tells it
        else:
            options["with_keyset"] = True
            kernel = lambda keys, x, *rest, **more: (self.ran.append(-number), x)[1]  # the same
        if rng.random() < 0.2 and key not in ("", "CompositeImplicitAutograd"):  # PyTorch takes these two for different
            options["allow_override"] = False
        self.libraries[index].impl(rng.choice(list(NAMES)), kernel, key, **options)

    def destroy(self, rng, index):
        if rng.random() < 0.5:
            self.libraries[index]._destroy()
        self.libraries[index] = None

    def call(self, rng, index):
        self.run(rng.choice(list(NAMES)), rng.choice(["cpu", "grad", "meta"]))

    def run(self, name, kind):
        """Calls an operator; returns the kernels that ran."""
        self.ran.clear()
        op = getattr(self.torch.ops, self.ns)
        for part in name.split("."):
            op = getattr(op, part)
        device = "meta" if kind == "meta" else "cpu"
        x = self.torch.ones(1, device=device, requires_grad=kind == "grad")
        op(*[x] * NAMES[name], *(["a"] if name == "g.s" else []))
        return list(self.ran)

    def seen(self):
        """Returns dumps, tables, listings and calls of this namespace."""
        C = self.torch._C

        def mine(found):
            return sorted(words(one) for one in found if f"{self.ns}::" in str(one))

        of_all = {
            "dangling": mine(C._dispatch_find_dangling_impls()),
            "names": mine(C._dispatch_get_all_op_names()),
            "schemas": mine(one for one in C._jit_get_all_schemas() if one.name.startswith(self.ns)),
            "on CPU": mine(C._dispatch_get_registrations_for_dispatch_key("CPU")),
        }
        return of_all | {name: self.seen_of(name) for name in NAMES}

    def seen_of(self, name):
        C, full, packet = self.torch._C, f"{self.ns}::{name}", name.partition(".")[0]
        return {
            "is known": C._dispatch_has_kernel(full),
            "holds": tried(lambda: C._dispatch_check_invariants(full)),
            "dump": words(C._dispatch_dump(full)),
            # not what answers for every operator: that says nothing of registrations
            "table": [
                words(line)
                for line in C._dispatch_dump_table(full).splitlines()
                if not line.endswith("[backend fallback]")
            ],
            "kernels": {
                key: tried(lambda key=key: C._dispatch_has_kernel_for_dispatch_key(full, key))
                for key in ("CPU", "Autograd", "CompositeImplicitAutograd")
            },
            "computed": tried(lambda: C._dispatch_has_computed_kernel_for_dispatch_key(full, "AutogradCPU")),
            "schemas": sorted(map(str, C._jit_get_schemas_for_operator(f"{self.ns}::{packet}"))),
            "overloads": tried(lambda: sorted(getattr(getattr(self.torch.ops, self.ns), packet).overloads())),
            "calls": {
                kind: [tried(lambda kind=kind: self.run(name, kind)), list(self.ran)]
                for kind in ("cpu", "grad", "meta")
            },
        }


def digest(seen):
    """Returns an outcome as a word; a dash where PyTorch's own check of its tables fails."""
    text = json.dumps(seen)
    return "-" if STALE in text else hashlib.blake2b(text.encode(), digest_size=5).hexdigest()
