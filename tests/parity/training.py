"""What a mode sees of training programs is what PyTorch's modes see: optimizers times models, operator by operator.

Run with a Python that has torch: `python tests/parity/training.py [words of names] [-v]`. Exits non-zero on a
difference that `KNOWN` does not name, and on a name in `KNOWN` that is no difference any more. A program runs two
steps on each library; a line of its log is an operator with its overload, and its arguments: shapes and dtypes of
tensors, and all else as it is.
"""

from __future__ import annotations

import difflib
import itertools
import sys
import warnings

import torch
import torch.fx.experimental.proxy_tensor
import torch.utils._python_dispatch

import redispatch
import redispatch.fx.experimental.proxy_tensor
import redispatch.utils._python_dispatch

# How a program's name begins -> why PyTorch shows other operators
CASTS = "statistics of layer_norm of bfloat16 with float32 weights are kept in bfloat16, PyTorch keeps float32"
FILLED = "arguments behind an undefined tensor are shown by PyTorch's graphs"
ALL = "dispatch loss,grad,graph"
LOSSES = {
    "cross_entropy weight smoothing": ("grad,graph", "under grad a fill is not in place"),
    "bce_logits": ("grad,graph", "under grad the operator is composite, with in-place steps"),
    "cosine_embedding": (ALL, "neg comes before add"),
    "triplet": (ALL, "the gradient of a norm avoids 0 / 0 before the division, PyTorch fills its result"),
}
KNOWN: dict[str, str] = {
    "dispatch train bag": "the gradient of embedding_bag is written in other operators; PyTorch's is one",
    "dispatch train lstm": "PyTorch's CPU library has one operator for a layer of an LSTM, mkldnn_rnn_layer",
    "dispatch step SGD lr=": "a rate of NaN is refused, so the question is another",
    "function step SGD lr=": "a rate of NaN is refused, so the question is another",
    "dispatch autocast mlp": CASTS,
    "graph bce": FILLED,
    "graph multi_margin": FILLED,
    "graph gaussian": "a logarithm that nothing uses is left in the graph",
    **{f"{kind} {name}": why for name, (kinds, why) in LOSSES.items() for kind in kinds.split(",")},
}

# What is asked of a tensor, and a switch, in the log of functions: each library asks what its own code wants to know
QUESTIONS = (
    ".__get__ .__set__ _set_grad_enabled Tensor.is_ is_complex is_floating_point Tensor.size Tensor.dim Tensor.numel"
).split()

# --- the log ----------------------------------------------------------------------------------------------------------


def text(lib, value):
    """A value in words that are the same for both libraries."""
    if isinstance(value, lib.Tensor):
        name = str(value.dtype).rpartition(".")[2].replace("float", "f").replace("int", "i")
        return f"{name}{list(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(text(lib, one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {text(lib, one)}' for key, one in value.items())}}}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if callable(value) or type(value).__name__ in ("ScriptObject", "Record"):
        return "an object"
    return repr(value).replace("torch.", "").replace("redispatch.", "")


def line(lib, name, args, kwargs):
    args = list(args)
    while (
        args and args[-1] is None
    ):  # PyTorch shows an undefined tensor that stands last, and leaves out other defaults
        args.pop()
    words = [text(lib, one) for one in args]
    words += [f"{key}={text(lib, one)}" for key, one in kwargs.items() if one is not None and one is not False]
    return f"{name}({', '.join(words)})"


def dispatch_log(lib, lines):
    class Log(lib.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            lines.append(line(lib, str(func), args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    return Log()


def function_log(lib, lines):
    class Log(lib.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = lib.overrides.resolve_name(func) or func.__name__
            name = name.replace("redispatch.", "").replace("torch.", "")
            if not any(word in name for word in QUESTIONS):
                named = [value for key, value in sorted((kwargs or {}).items()) if key not in ("device", "dtype")]
                lines.append(line(lib, name, [*args, *named], {}))
            return func(*args, **(kwargs or {}))

    return Log()


# --- models: each gives a module and a loss of it ---------------------------------------------------------------------


def numbers(lib, *shape):
    count = 1
    for size in shape:
        count *= size
    return ((lib.arange(count, dtype=lib.float32) * 0.7).sin()).reshape(shape)


def mlp(lib):
    nn, F = lib.nn, lib.nn.functional
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.LayerNorm(8), nn.Linear(8, 3))
    x, y = numbers(lib, 5, 4), lib.tensor([0, 2, 1, 0, 2])
    return model, lambda: F.cross_entropy(model(x), y)


def cnn(lib):
    nn, F = lib.nn, lib.nn.functional
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3), nn.GroupNorm(2, 6), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 2),
    )  # fmt: skip
    x, y = numbers(lib, 2, 3, 8, 8), numbers(lib, 2, 2).sigmoid()
    return model, lambda: F.binary_cross_entropy_with_logits(model(x), y) + F.mse_loss(model(x), y)


def gpt(lib):
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
            self.before, self.between = nn.LayerNorm(8), nn.LayerNorm(8)
            self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.Dropout(0.1))

        def forward(self, x):
            q, k, v = (one.view(2, 5, 2, 4).transpose(1, 2) for one in self.qkv(self.before(x)).split(8, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(2, 5, 8))
            return x + self.mlp(self.between(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(11, 8), nn.Embedding(5, 8)
            self.blocks, self.last = nn.ModuleList([Block(), Block()]), nn.LayerNorm(8)
            self.head = nn.Linear(8, 11, bias=False)
            self.head.weight = self.tokens.weight

        def forward(self, ids):
            x = self.tokens(ids) + self.places(lib.arange(5))
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x))

    model = GPT()
    ids = lib.arange(10).reshape(2, 5)
    return model, lambda: F.cross_entropy(model(ids).view(-1, 11), ids.view(-1), ignore_index=-1)


def rnn(lib):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.GRU(3, 4, num_layers=2, batch_first=True)
            self.gru, self.rnn = nn.GRU(4, 4, bidirectional=True), nn.RNN(8, 4)
            self.cell, self.head = nn.LSTMCell(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            x, _ = self.first(x)
            x, _ = self.gru(x)
            x, _ = self.rnn(x)
            return self.head(self.cell(x[:, -1])[0])

    model = Net()
    x, y = numbers(lib, 2, 5, 3), numbers(lib, 2, 2)
    return model, lambda: F.smooth_l1_loss(model(x), y) + F.huber_loss(model(x), y)


def lstm(lib):
    nn = lib.nn
    model, head = nn.LSTM(3, 4, num_layers=2, batch_first=True), nn.Linear(4, 2)
    return model, lambda: lib.nn.functional.mse_loss(head(model(numbers(lib, 2, 5, 3))[0][:, -1]), numbers(lib, 2, 2))


def bag(lib):
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.bag = nn.EmbeddingBag(10, 8, mode="mean")
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.head = nn.Linear(8, 3)

        def forward(self, ids, offsets):
            x = self.layer(self.bag(ids, offsets).unsqueeze(0))
            x, _ = self.attention(x, x, x)
            return F.log_softmax(self.head(x.squeeze(0)), dim=-1)

    model = Net()
    ids, offsets, y = lib.tensor([1, 2, 4, 5, 4, 3, 2, 9]), lib.tensor([0, 3, 6]), lib.tensor([0, 2, 1])
    return (
        model,
        lambda: (
            F.nll_loss(model(ids, offsets), y)
            + F.kl_div(model(ids, offsets), numbers(lib, 3, 3).softmax(-1), reduction="batchmean")
        ),
    )


MODELS = {one.__name__: one for one in (mlp, cnn, gpt, rnn, bag, lstm)}

OPTIMIZERS = {
    "sgd": ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    "adam": ("Adam", {"lr": 0.01}),
    "adamw": ("AdamW", {"lr": 0.01, "amsgrad": True}),
    "rmsprop": ("RMSprop", {"lr": 0.01, "momentum": 0.9, "centered": True}),
    "adagrad": ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
}

# Every optimizer with its switches, on two parameters
COMMON = [{}, {"weight_decay": 0.1}, {"maximize": True}, {"foreach": True}, {"foreach": True, "weight_decay": 0.1},
          {"foreach": True, "maximize": True}, {"differentiable": True}, {"foreach": False}]  # fmt: skip
TENSOR_LR = ({"lr": ("tensor", 0.1)},)
FUSED = ({"fused": True}, {"fused": True, "weight_decay": 0.1, "maximize": True})
CAPTURABLE = ()  # refused for parameters on the CPU
SWITCHES = {
    "SGD": [*COMMON, *FUSED, *TENSOR_LR, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "foreach": True},
            {"momentum": 0.9, "dampening": 0.5, "foreach": True}, {"momentum": 0.9, "fused": True},
            {"momentum": 0.9, "dampening": 0.1, "maximize": True}],
    "Adam": [*COMMON, *FUSED, *TENSOR_LR, {"amsgrad": True}, {"amsgrad": True, "foreach": True},
             {"amsgrad": True, "fused": True}, {"amsgrad": True, "differentiable": True}],
    "AdamW": [*COMMON, *FUSED, *TENSOR_LR, {"amsgrad": True}, {"amsgrad": True, "foreach": True}],
    "Adagrad": [*COMMON, *FUSED, {"lr_decay": 0.1}, {"lr_decay": 0.1, "foreach": True}],
    "Adadelta": [*COMMON],
    "Adamax": [*COMMON],
    "NAdam": [*COMMON, {"decoupled_weight_decay": True, "weight_decay": 0.1},
              {"decoupled_weight_decay": True, "weight_decay": 0.1, "foreach": True}],
    "RAdam": [*COMMON, {"decoupled_weight_decay": True, "weight_decay": 0.1},
              {"decoupled_weight_decay": True, "weight_decay": 0.1, "foreach": True}],
    "RMSprop": [*COMMON, {"momentum": 0.9}, {"centered": True}, {"momentum": 0.9, "centered": True, "foreach": True}],
    "Rprop": [one for one in COMMON if "weight_decay" not in one],
    "ASGD": [*COMMON, {"t0": 1}, {"t0": 1, "foreach": True}],
    "Adafactor": [one for one in COMMON if "differentiable" not in one],
    "Muon": [{}, {"nesterov": False}, {"weight_decay": 0.0}],
}  # fmt: skip


def training(lib, model, optimizer, log, *, autocast=False):
    """The log of two steps of a program: forward, loss, backward, clipping, optimizer, schedule."""
    lib.manual_seed(0)
    module, loss_of = MODELS[model](lib)
    name, options = OPTIMIZERS[optimizer]
    made = getattr(lib.optim, name)(module.parameters(), **options)
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(made, 10)
    lines: list[str] = []
    with log(lib, lines):
        for step in range(2):
            lines.append(f"# step {step}")
            made.zero_grad()
            with lib.autocast("cpu", dtype=lib.bfloat16, enabled=autocast):
                loss = loss_of()
            lines.append("# backward")
            loss.backward()
            lines.append("# clip")
            if step:
                lib.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            else:
                lib.nn.utils.clip_grad_value_(module.parameters(), 0.5)
            lines.append("# update")
            made.step()
            schedule.step()
    return lines


def stepping(lib, name, options, log):
    """The log of eight steps of an optimizer on two parameters."""
    options = {key: lib.tensor(value[1]) if isinstance(value, tuple) else value for key, value in options.items()}
    shapes = [(3, 4)] if name == "Muon" else [(3, 4), (5,)]
    params = [lib.nn.Parameter(numbers(lib, *shape)) for shape in shapes]
    lines: list[str] = []
    if options.get("differentiable"):
        params = [one.clone() for one in params]
    with log(lib, lines):
        made = getattr(lib.optim, name)(params, **options)
        for step in range(8):
            lines.append(f"# step {step}")
            for one in params:
                one.grad = numbers(lib, *one.shape)
            made.step()
    return lines


def losses(lib):
    F = lib.nn.functional
    y, w = numbers(lib, 4, 3).cos(), numbers(lib, 3).sigmoid()
    ids, positive, signs = lib.tensor([0, 2, 1, 1]), y.sigmoid(), lib.tensor([1.0, -1.0, 1.0, -1.0])
    return {
        "cross_entropy": lambda p: F.cross_entropy(p, ids),
        "cross_entropy weight smoothing": lambda p: F.cross_entropy(p, ids, weight=w, label_smoothing=0.1),
        "cross_entropy probabilities": lambda p: F.cross_entropy(p, positive, reduction="sum"),
        "nll_loss": lambda p: F.nll_loss(F.log_softmax(p, -1), ids, reduction="none").mean(),
        "mse_loss": lambda p: F.mse_loss(p, y),
        "mse_loss weight": lambda p: F.mse_loss(p, y, weight=positive),
        "l1_loss": lambda p: F.l1_loss(p, y),
        "smooth_l1_loss": lambda p: F.smooth_l1_loss(p, y, beta=0.5),
        "huber_loss": lambda p: F.huber_loss(p, y, reduction="sum"),
        "bce": lambda p: F.binary_cross_entropy(p.sigmoid(), positive),
        "bce_logits": lambda p: F.binary_cross_entropy_with_logits(p, positive, pos_weight=w),
        "kl_div": lambda p: F.kl_div(p.log_softmax(-1), positive, reduction="batchmean"),
        "kl_div log": lambda p: F.kl_div(p.log_softmax(-1), y, reduction="sum", log_target=True),
        "hinge_embedding": lambda p: F.hinge_embedding_loss(p, y.sign()),
        "cosine_embedding": lambda p: F.cosine_embedding_loss(p, y, signs),
        "margin_ranking": lambda p: F.margin_ranking_loss(p[:, 0], p[:, 1], signs),
        "triplet": lambda p: F.triplet_margin_loss(p, y, y.flip(0)),
        "soft_margin": lambda p: F.soft_margin_loss(p, y.sign()),
        "multi_margin": lambda p: F.multi_margin_loss(p, ids),
        "multilabel_margin": lambda p: F.multilabel_margin_loss(p, lib.tensor([[0, 2, -1]] * 4)),
        "multilabel_soft_margin": lambda p: F.multilabel_soft_margin_loss(p, positive.round()),
        "poisson": lambda p: F.poisson_nll_loss(p, positive, full=True),
        "gaussian": lambda p: F.gaussian_nll_loss(p, y, positive),
        "ctc": lambda p: F.ctc_loss(p.log_softmax(-1), lib.tensor([1, 2]), lib.tensor(4), lib.tensor(2)),
    }  # fmt: skip


def loss_log(lib, name, log):
    p = numbers(lib, 4, 3).requires_grad_()
    loss, lines = losses(lib)[name], []
    with log(lib, lines):
        loss(p).backward()
    return lines


def grad_log(lib, name, log):
    p = numbers(lib, 4, 3)
    loss, lines = losses(lib)[name], []
    with log(lib, lines):
        lib.func.grad(loss)(p)
    return lines


def graph_log(lib, name, log):
    """The steps of the graph of a gradient."""
    graph = lib.fx.experimental.proxy_tensor.make_fx(lib.func.grad(losses(lib)[name]))(numbers(lib, 4, 3)).graph
    steps = [one for one in graph.nodes if one.op == "call_function"]
    return [
        line(lib, str(one.target), [text(lib, a) if not hasattr(a, "op") else "x" for a in one.args], {})
        for one in steps
    ]


def programs():
    """Name -> a function of a library, which gives a log."""
    for log in (dispatch_log, function_log):
        kind = log.__name__.removesuffix("_log")
        for model, optimizer in itertools.product(list(MODELS)[:5], OPTIMIZERS):
            yield (
                f"{kind} train {model} {optimizer}",
                lambda lib, m=model, o=optimizer, log=log: training(lib, m, o, log),
            )
        yield f"{kind} train lstm adam", lambda lib, log=log: training(lib, "lstm", "adam", log)
        for model in ("mlp", "gpt"):
            yield f"{kind} autocast {model}", lambda lib, m=model, log=log: training(lib, m, "adam", log, autocast=True)
        for name, rows in SWITCHES.items():
            for options in rows:
                said = " ".join(f"{key}={value}" for key, value in options.items())
                yield f"{kind} step {name} {said}", lambda lib, n=name, o=options, log=log: stepping(lib, n, o, log)
        for name in losses(torch):
            yield f"{kind} loss {name}", lambda lib, n=name, log=log: loss_log(lib, n, log)
            if log is dispatch_log:
                yield f"grad {name}", lambda lib, n=name, log=log: grad_log(lib, n, log)
                yield f"graph {name}", lambda lib, n=name, log=log: graph_log(lib, n, log)


def outcome(program, lib):
    try:
        return program(lib)
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def main(*words: str) -> int:
    warnings.simplefilter("ignore")
    verbose, words = "-v" in words, [one for one in words if one != "-v"]
    wrong = known = count = 0
    for name, program in programs():
        if any(word not in name for word in words):
            continue
        count += 1
        theirs, ours = outcome(program, torch), outcome(program, redispatch)
        reason = next((why for beginning, why in KNOWN.items() if name.startswith(beginning)), None)
        if (theirs != ours) is (reason is not None):
            known += reason is not None
            continue
        wrong += 1
        found = [one for one in difflib.unified_diff(theirs, ours, "torch", "ours", lineterm="", n=0)][2:]
        print(f"{name}: {len(found)} lines differ" if found else f"{name}: it is known to differ, and does not")
        if verbose:
            print("\n".join(f"    {one}" for one in found))
    print(f"{count} programs, {known} known differences, {wrong} others")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
