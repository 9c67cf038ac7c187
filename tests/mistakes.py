"""Mistakes of beginners, and of authors of extensions: each a program that fails. Read by test_mistakes.py.

The name says what is wrong. All know `rd`, `nn` and `F`; real torch can stand for `rd` in all of them, and
tests/parity/test_mistakes.py compares. The first 65 are those of a survey; the others are from forums and issues.
"""

MODES = "from redispatch.utils._python_dispatch import TorchDispatchMode\n"
FUNCTION_MODES = "from redispatch.overrides import TorchFunctionMode\n"
LIBRARY = "from redispatch.library import Library, custom_op\n"
WRAPPER = """
class W(rd.Tensor):
    @staticmethod
    def __new__(cls, x): return rd.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)
    def __init__(self, x): self.x = x
"""

MISTAKES = {
    # the survey
    "matmul of shapes that do not fit": "a = rd.ones(2, 3)\na @ a",
    "broadcast of shapes that do not fit": "rd.ones(2, 3) + rd.ones(4)",
    "Linear with another number of features": "nn.Linear(4, 2)(rd.ones(3, 5))",
    "Linear on ints": "nn.Linear(4, 2)(rd.ones(3, 4, dtype=rd.int64))",
    "double times float": "rd.ones(2, 2).double() @ rd.ones(2, 2)",
    "write to a leaf": "x = rd.ones(2, requires_grad=True)\nx += 1",
    "backward twice": "x = rd.ones(2, requires_grad=True)\ny = x.exp().sum()\ny.backward()\ny.backward()",
    "backward without requires_grad": "rd.ones(2).sum().backward()",
    "backward of a vector": "x = rd.ones(2, requires_grad=True)\n(x * 2).backward()",
    "requires_grad of ints": "rd.ones(2, dtype=rd.int64, requires_grad=True)",
    "numpy of what requires grad": "rd.ones(2, requires_grad=True).numpy()",
    "saved tensor written": "x = rd.ones(2, requires_grad=True)\ny = x.exp()\ny.add_(1)\ny.sum().backward()",
    "truth of many": "if rd.ones(2) > 0: pass",
    "custom operator without fake": LIBRARY
    + (
        "@custom_op('m14::f', mutates_args=())\ndef f(x: rd.Tensor) -> rd.Tensor: return x.clone()\n"
        "f(rd.ones(2, device='meta'))"
    ),
    "custom operator without derivative": LIBRARY
    + (
        "@custom_op('m15::f', mutates_args=())\ndef f(x: rd.Tensor) -> rd.Tensor: return x.clone()\n"
        "f(rd.ones(2, requires_grad=True)).sum().backward()"
    ),
    "custom operator without annotation": LIBRARY + "@custom_op('m16::f', mutates_args=())\ndef f(x): return x.clone()",
    "custom operator that returns its input": LIBRARY
    + ("@custom_op('m17::f', mutates_args=())\ndef f(x: rd.Tensor) -> rd.Tensor: return x\nf(rd.ones(2))"),
    "undeclared write": LIBRARY
    + (
        "from redispatch.library import opcheck\n"
        "@custom_op('m18::f', mutates_args=())\ndef f(x: rd.Tensor) -> rd.Tensor:\n    x.add_(1)\n    return x.clone()\n"
        "opcheck(f, (rd.ones(2),), test_utils='test_schema')"
    ),
    "recursion in __torch_dispatch__": WRAPPER
    + (
        "    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
        "        return func(*args, **(kwargs or {}))\nW(rd.ones(2)) + 1"
    ),
    "recursion in __torch_function__": (
        "class S(rd.Tensor):\n    @classmethod\n    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return func(*args, **(kwargs or {}))\nrd.ones(2).as_subclass(S) + 1"
    ),
    "__torch_dispatch__ returns nothing": WRAPPER
    + (
        "    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):\n"
        "        func(*[a.x if isinstance(a, W) else a for a in args])\n(W(rd.ones(2)) + 1).sum()"
    ),
    "__torch_dispatch__ is no classmethod": WRAPPER
    + (
        "    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        return func(*args[0].x)\nW(rd.ones(2)) + 1"
    ),
    "wrapper without __init__": (
        "class W(rd.Tensor):\n    @staticmethod\n"
        "    def __new__(cls, x): return rd.Tensor._make_wrapper_subclass(cls, x.shape, dtype=x.dtype)\n"
        "    @classmethod\n    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): return func(args[0].x)\n"
        "W(rd.ones(2)).neg()"
    ),
    "mode that is left twice": MODES
    + (
        "class M(TorchDispatchMode):\n    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        return func(*args, **(kwargs or {}))\nm = M()\nm.__enter__()\nm.__exit__(None, None, None)\n"
        "m.__exit__(None, None, None)"
    ),
    "mode that enters itself": MODES
    + (
        "class M(TorchDispatchMode):\n    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        with self: return func(*args, **(kwargs or {}))\nwith M(): rd.ones(2)"
    ),
    "function mode that enters itself": FUNCTION_MODES
    + (
        "class M(TorchFunctionMode):\n    def __torch_function__(self, func, types, args=(), kwargs=None):\n"
        "        with self: return func(*args, **(kwargs or {}))\nwith M(): rd.ones(2).sum()"
    ),
    "mode that forgets to return": MODES
    + (
        "class M(TorchDispatchMode):\n    def __torch_dispatch__(self, func, types, args=(), kwargs=None):\n"
        "        func(*args, **(kwargs or {}))\nwith M(): rd.ones(2) + 1"
    ),
    "modes left out of order": MODES
    + (
        "class M(TorchDispatchMode): pass\na, b = M(), M()\na.__enter__()\nb.__enter__()\n"
        "a.__exit__(None, None, None)\nb.__exit__(None, None, None)\nb.__exit__(None, None, None)"
    ),
    "misspelled type in a schema": LIBRARY + "Library('m29', 'DEF').define('f(Tensr x) -> Tensor')",
    "schema without arrow": LIBRARY + "Library('m30', 'DEF').define('f(Tensor x)')",
    "list[int] in a schema": LIBRARY + "Library('m31', 'DEF').define('f(list[int] n) -> Tensor')",
    "operator defined twice": LIBRARY
    + "l = Library('m32', 'DEF')\nl.define('f(Tensor x) -> Tensor')\nl.define('f(Tensor x) -> Tensor')",
    "namespace defined twice": LIBRARY + "a = Library('m33', 'DEF')\nb = Library('m33', 'DEF')",
    "misspelled key": LIBRARY
    + "l = Library('m34', 'DEF')\nl.define('f(Tensor x) -> Tensor')\nl.impl('f', lambda x: x, 'Cpu')",
    "kernel of another namespace": LIBRARY + "Library('m35', 'IMPL').impl('other::f', lambda x: x, 'CPU')",
    "misspelled operator": "rd.ops.aten.ad(rd.ones(2), 1)",
    "misspelled method": "rd.ones(2).summ()",
    "misspelled function": "rd.onse(2)",
    "kernel of too few parameters": LIBRARY
    + (
        "l = Library('m39', 'DEF')\nl.define('f(Tensor x, Tensor y) -> Tensor')\n"
        "l.impl('f', lambda x: x.clone(), 'CPU')\nrd.ops.m39.f(rd.ones(2), rd.ones(2))"
    ),
    "kernel that returns a number": LIBRARY
    + (
        "l = Library('m40', 'DEF')\nl.define('f(Tensor x) -> Tensor')\nl.impl('f', lambda x: 3.0, 'CPU')\n"
        "rd.ops.m40.f(rd.ones(2))"
    ),
    "operator without kernel": LIBRARY
    + ("l = Library('m41', 'DEF')\nl.define('f(Tensor x) -> Tensor')\nrd.ops.m41.f(rd.ones(2))"),
    "save of a local class": (
        "import io\ndef make():\n    class Local(nn.Module): pass\n    return Local()\nrd.save(make(), io.BytesIO())"
    ),
    "wrong number of gradients": (
        "class F1(rd.autograd.Function):\n    @staticmethod\n    def forward(ctx, x, y): return x * y\n    @staticmethod\n"
        "    def backward(ctx, g): return g\nx = rd.ones(2, requires_grad=True)\nF1.apply(x, x).sum().backward()"
    ),
    "Function that is called": (
        "class F2(rd.autograd.Function):\n    @staticmethod\n    def forward(ctx, x): return x * 2\nF2()(rd.ones(2))"
    ),
    "vmap over an if": "rd.func.vmap(lambda x: x if x > 0 else -x)(rd.ones(3))",
    "index out of range": "rd.ones(3)[5]",
    "view written in no_grad": ("x = rd.ones(4, requires_grad=True)\nwith rd.no_grad(): v = x.view(2, 2)\nv.add_(1)"),
    "too many indices": "rd.ones(3)[0, 0]",
    "cat of other shapes": "rd.cat([rd.ones(2, 3), rd.ones(2, 4)], dim=0)",
    "reshape to another number": "rd.ones(6).reshape(4, 2)",
    "view of what is not contiguous": "rd.ones(2, 3).t().view(6)",
    "cross entropy of float classes": "F.cross_entropy(rd.ones(3, 2), rd.ones(3))",
    "class out of range": "F.cross_entropy(rd.ones(2, 3), rd.tensor([0, 5]))",
    "loss of other sizes": "F.binary_cross_entropy(rd.ones(3).sigmoid(), rd.ones(4))",
    "state_dict of another model": "nn.Linear(2, 3).load_state_dict({'weight': rd.ones(3, 2)})",
    "state_dict of other sizes": "nn.Linear(2, 3).load_state_dict(nn.Linear(2, 4).state_dict())",
    "optimizer without parameters": "rd.optim.SGD([], lr=0.1)",
    "optimizer of a generator used up": "p = nn.Linear(2, 2).parameters()\nlist(p)\nrd.optim.SGD(p, lr=0.1)",
    "Module without super().__init__": ("class M(nn.Module):\n    def __init__(self): self.l = nn.Linear(2, 2)\nM()"),
    "Module without forward": "class M(nn.Module): pass\nM()(rd.ones(2))",
    "fake with other parameters": LIBRARY
    + (
        "@custom_op('m59::f', mutates_args=())\ndef f(x: rd.Tensor, n: int) -> rd.Tensor: return x * n\n"
        "@f.register_fake\ndef _(x): return rd.empty_like(x)\nf(rd.ones(2, device='meta'), 2)"
    ),
    "operator name without namespace": LIBRARY
    + "@custom_op('f', mutates_args=())\ndef f(x: rd.Tensor) -> rd.Tensor: return x * 2",
    "unknown device": "rd.ones(2, device='gpu')",
    "float where an int is wanted": "rd.ones(2.5)",
    "dtype by a string": "rd.ones(2, dtype='float32')",
    "fake and real": (
        "from redispatch._subclasses.fake_tensor import FakeTensorMode\nx = rd.ones(2)\n"
        "with FakeTensorMode(): y = rd.ones(2)\ny + x"
    ),
    # our own
    "no positional argument of that kind": "rd.ones(2).sum('0')",
    "unknown keyword": "rd.ones(2).sum(axes=0)",
    "missing argument": "rd.add(rd.ones(2))",
    "numpy array in an operator": "import numpy\nrd.add(numpy.ones(2), 1)",
    "list in an operator": "rd.exp([1.0, 2.0])",
    "dimension out of range": "rd.ones(2, 3).sum(dim=2)",
    "negative dimension": "rd.ones(-2)",
    "ragged list": "rd.tensor([[1, 2], [3]])",
    "string in a tensor": "rd.tensor(['a'])",
    "item of many": "rd.ones(3).item()",
    "int of many": "int(rd.ones(3))",
    "squeeze then unpack": "a, b = rd.ones(3)",
    "iterate a number": "for x in rd.tensor(1.0): pass",
    "len of a number": "len(rd.tensor(1.0))",
    "stack of other shapes": "rd.stack([rd.ones(2), rd.ones(3)])",
    "bmm of matrices": "rd.bmm(rd.ones(2, 2), rd.ones(2, 2))",
    "mm of vectors": "rd.mm(rd.ones(2), rd.ones(2))",
    "dot of other sizes": "rd.dot(rd.ones(2), rd.ones(3))",
    "conv of another channel count": "nn.Conv2d(3, 4, 3)(rd.ones(1, 1, 8, 8))",
    "conv of a picture too small": "nn.Conv2d(1, 1, 5)(rd.ones(1, 1, 3, 3))",
    "conv without channels": "nn.Conv2d(1, 1, 3)(rd.ones(8, 8))",
    "batch norm of one": "nn.BatchNorm1d(3)(rd.ones(1, 3))",
    "batch norm of other features": "nn.BatchNorm1d(3)(rd.ones(2, 4))",
    "embedding of floats": "nn.Embedding(5, 2)(rd.ones(3))",
    "embedding out of range": "nn.Embedding(5, 2)(rd.tensor([7]))",
    "layer norm of other sizes": "nn.LayerNorm(4)(rd.ones(2, 3))",
    "lstm of other sizes": "nn.LSTM(4, 2)(rd.ones(5, 1, 3))",
    "attention of other sizes": "nn.MultiheadAttention(4, 2)(rd.ones(3, 1, 5), rd.ones(3, 1, 5), rd.ones(3, 1, 5))",
    "heads that do not divide": "nn.MultiheadAttention(5, 2)",
    "mse of other sizes": "import warnings\nwarnings.simplefilter('ignore')\nF.mse_loss(rd.ones(3, 2), rd.ones(4, 2))",
    "nll of floats": "F.nll_loss(rd.ones(3, 2), rd.ones(3))",
    "dropout above one": "nn.Dropout(1.5)",
    "layer in a list": "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.l = [nn.Linear(2, 2)]\nrd.optim.SGD(M().parameters(), lr=0.1)",
    "parameter that is a plain tensor": "l = nn.Linear(2, 2)\nl.weight = rd.ones(2, 2)",
    "missing attribute of a module": "nn.Linear(2, 2).wieght",
    "Sequential of a list": "nn.Sequential([nn.Linear(2, 2)])",
    "Sequential of functions": "nn.Sequential(nn.Linear(2, 2), F.relu)",
    "misspelled layer": "nn.Linaer(2, 2)",
    "misspelled loss": "F.cross_entorpy(rd.ones(1, 2), rd.tensor([0]))",
    "misspelled dtype": "rd.flot32",
    "optimizer of a module": "rd.optim.SGD(nn.Linear(2, 2), lr=0.1)",
    "optimizer of a result": "rd.optim.SGD([rd.ones(2, requires_grad=True) * 2], lr=0.1)",
    "negative learning rate": "rd.optim.SGD([rd.ones(2, requires_grad=True)], lr=-1)",
    "grad of what does not depend": "x = rd.ones(2, requires_grad=True)\ny = rd.ones(2, requires_grad=True)\nrd.autograd.grad(x.sum(), y)",
    "grad of a vector": "x = rd.ones(2, requires_grad=True)\nrd.autograd.grad(x * 2, x)",
    "grad by func of a vector": "rd.func.grad(lambda x: x * 2)(rd.ones(2))",
    "requires_grad of a result": "x = rd.ones(2, requires_grad=True)\ny = x * 2\ny.requires_grad = False",
    "grad of another shape": "x = rd.ones(2, requires_grad=True)\nx.grad = rd.ones(3)",
    "inference tensor in training": (
        "with rd.inference_mode(): x = rd.ones(2)\nw = rd.ones(2, requires_grad=True)\n(w * x).sum().backward()"
    ),
    "inference tensor written": "with rd.inference_mode(): x = rd.ones(2)\nx.add_(1)",
    "deepcopy of a result": "import copy\nx = rd.ones(2, requires_grad=True)\ncopy.deepcopy(x * 2)",
    "vmap over item": "rd.func.vmap(lambda x: x.item())(rd.ones(3))",
    "vmap over other sizes": "rd.func.vmap(lambda x, y: x + y)(rd.ones(3), rd.ones(4))",
    "vmap of a list": "rd.func.vmap(lambda x: x)([1, 2])",
    "vmap over random numbers": "rd.func.vmap(lambda x: x + rd.rand(1))(rd.ones(3))",
    "expand of another size": "rd.ones(3).expand(2, 4)",
    "write through an expanded view": "rd.ones(1).expand(3).add_(1)",
    "in-place to another dtype": "rd.ones(2, dtype=rd.int64).add_(0.5)",
    "in-place to another shape": "rd.ones(2).add_(rd.ones(3, 2))",
    "out of another dtype": "rd.add(rd.ones(2), 0.5, out=rd.ones(2, dtype=rd.int64))",
    "invalid dtype for mean": "rd.ones(2, dtype=rd.int64).mean()",
    "assignment of another shape": "x = rd.ones(2, 3)\nx[0] = rd.ones(2)",
    "mask of another shape": "rd.ones(2, 3)[rd.ones(2, 2, dtype=rd.bool)]",
    "index by floats": "rd.ones(3)[rd.ones(2)]",
    "gather of floats": "rd.gather(rd.ones(2, 2), 0, rd.ones(2, 2))",
    "scatter out of range": "rd.zeros(2).scatter(0, rd.tensor([3]), 1.0)",
    "load of a missing file": "rd.load('/no/such/file.pt')",
    "matrix that is singular": "rd.linalg.inv(rd.zeros(2, 2))",
    "cholesky of what is not positive": "rd.linalg.cholesky(-rd.eye(2))",
    "cuda that is not there": "rd.ones(2).cuda()",
}
