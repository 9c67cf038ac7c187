"""Programs of a device: each returns tensors, which are the same on the CPU and on the lazy device."""

import copy

import redispatch as rd
from redispatch import nn
from redispatch.nn import functional as F
from redispatch.utils.checkpoint import checkpoint

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def numbers(device, *shape, seed=0):
    rd.manual_seed(seed)
    return rd.randn(*shape).to(device)


@program
def views(device):
    x = numbers(device, 3, 4)
    y = x.t()
    y[1].mul_(2)
    x[:, 0] = 7
    z = x.view(-1)[2:9:3]
    z.zero_()
    return x, y, z, x.unsqueeze(0).expand(2, 3, 4)


@program
def writes(device):
    x = numbers(device, 3, 4)
    y = x.add_(1).relu_()
    x.clamp_(min=0.5)
    x[x > 1] = 0
    return x, y


@program
def strided(device):
    x = numbers(device, 4, 5)
    y = x.as_strided((2, 2), (5, 1), 3)
    y.add_(1)
    return x, y, x[1:].as_strided((2,), (2,), 6)


@program
def resized(device):
    x = numbers(device, 2, 3)
    x.resize_(3, 2)
    x.t_()
    x.unsqueeze_(0)
    return x, x.squeeze_().clone()


@program
def gradients(device):
    x, w = numbers(device, 3, 4).requires_grad_(), numbers(device, 4, 2, seed=1).requires_grad_()
    y = (x @ w).tanh().sum()
    y.backward()
    (g,) = rd.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = rd.autograd.grad(g.sum(), x)
    return y.detach(), x.grad, w.grad, g.detach(), h


@program
def hooks(device):
    x, seen = numbers(device, 3).requires_grad_(), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g) or g * 3)
    y.sum().backward()
    return x.grad, *seen


@program
def modes(device):
    x = numbers(device, 3).requires_grad_()
    with rd.no_grad():
        x.mul_(2)
        y = x * 2
    with rd.inference_mode():
        z = x * 3
    return x.detach(), y, z, y.requires_grad


@program
def random(device):
    rd.manual_seed(3)
    rd.rand(3, device=device)  # is drawn, though nobody wants it
    empty, half = rd.empty(3, device=device), rd.full((4,), 0.5, device=device)
    drawn = rd.rand(3, device=device), rd.randn(2, 2, device=device), rd.randint(0, 9, (4,), device=device)
    drawn += rd.randperm(5, device=device), rd.bernoulli(half), empty.uniform_(-1, 1), rd.rand_like(half)
    drawn += F.dropout(rd.ones(10, device=device), 0.5), rd.multinomial(half, 3), rd.normal(rd.zeros_like(half), 1.0)
    return *drawn, rd.rand(2).to(device)


@program
def dynamic(device):
    x = numbers(device, 3, 4)
    unique = rd.unique(rd.tensor([3, 1, 1, 2], device=device))
    return x.nonzero(), x[x > 0], unique, rd.masked_select(x, x < 0), *rd.where(x > 0)


@program
def indexed(device):
    x, i = numbers(device, 5, 4), rd.tensor([0, 2, 4], device=device)
    y = x[i]
    x[i] = 1.0
    x.index_add_(0, i, rd.ones(3, 4, device=device))
    return y, x, x.gather(1, rd.zeros(5, 1, dtype=rd.int64, device=device)), x.index_select(0, i), x[rd.tensor([1, 2])]


@program
def several_results(device):
    x = numbers(device, 6, 4)
    parts = x.split(2)
    parts[0].add_(3)
    return *x.sort(), *x.max(1), *parts, *x.unbind(1), *x.topk(2), *x.chunk(3, 1), *rd.var_mean(x, 1)


@program
def lists(device):
    x = [numbers(device, 3), numbers(device, 2, seed=1)]
    rd._foreach_add_(x, 1.0)
    return *x, *rd._foreach_mul(x, 2.0), rd.cat(x), rd.stack([x[0], x[0]])


@program
def linear_algebra(device):
    x = numbers(device, 4, 4)
    s = x @ x.t() + rd.eye(4, device=device)
    return rd.linalg.cholesky(s), rd.linalg.solve(s, x), rd.linalg.det(s), rd.linalg.eigvalsh(s), rd.cdist(x, x)


@program
def complex_numbers(device):
    x = rd.complex(numbers(device, 3), numbers(device, 3, seed=1))
    y = x.conj()
    z, w, v = y * 2, y.imag, rd.view_as_real(x).clone()
    x.mul_(2)
    return y.resolve_conj(), z, w, v, y.abs(), x.real, x.conj().imag.neg()


@program
def factories(device):
    like = rd.ones(2, device=device)
    made = rd.zeros(2, device=device), rd.full((2,), 3, device=device), rd.arange(5, device=device)
    made += rd.linspace(0, 1, 4, device=device), rd.tensor([[1, 2], [3, 4]], device=device), rd.empty(0, device=device)
    return *made, rd.zeros_like(like), like.new_full((3,), 2.0), rd.tril_indices(3, 3, device=device)


@program
def dtypes(device):
    x = numbers(device, 3, 4)
    return (
        x.half(),
        x.double(),
        x.int(),
        (x > 0) * 2.5,
        x.to(rd.bfloat16) * 2,
        rd.ones(2, dtype=rd.int32, device=device) / 2,
    )


@program
def default_dtype(device):
    long = rd.ones(2, dtype=rd.int64, device=device)
    before = long * 2.5  # recorded; it means float32, whenever it is run
    rd.set_default_dtype(rd.float64)
    try:
        return before, long * 2.5, rd.ones(2, device=device)
    finally:
        rd.set_default_dtype(rd.float32)


@program
def special_numbers(device):
    x = numbers(device, 3)
    return x * float("nan"), x * -0.0, x * 0.0, x + float("inf"), rd.full((2,), -0.0, device=device), x * True, x * 1


@program
def losses(device):
    x, t = numbers(device, 5, 4).requires_grad_(), rd.tensor([0, 1, 2, 3, 0], device=device)
    loss = F.cross_entropy(x, t) + F.mse_loss(x, rd.zeros_like(x)) + F.nll_loss(F.log_softmax(x, 1), t)
    loss.backward()
    return loss.detach(), x.grad


def trained(module, *inputs):
    y = module(*inputs)
    y = y[0] if isinstance(y, tuple) else y
    y.pow(2).mean().backward()
    return y.detach(), *[one.grad for one in module.parameters()], *module.buffers()


@program
def convolution(device):
    rd.manual_seed(0)
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 2)
    return trained(nn.Sequential(*layers).to(device), numbers(device, 2, 1, 8, 8))


@program
def attention(device):
    rd.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1).to(device)
    return trained(layer, numbers(device, 2, 5, 8))


@program
def recurrent(device):
    rd.manual_seed(0)
    return trained(nn.LSTM(4, 3).to(device), numbers(device, 5, 2, 4))


@program
def control_flow(device):
    x, n = numbers(device, 3), 0
    while x.abs().sum() > 1 and n < 9:
        x, n = x * 0.7, n + 1
    return x, n, float(x[0]) > 0, int(x.argmax()), f"{x[0]:.3f}", x.tolist()


@program
def copies(device):
    x, near = numbers(device, 3), rd.zeros(3)
    near.copy_(x)
    x.copy_(rd.ones(3))
    y = numbers(device, 3)
    y.data = numbers(device, 2, seed=1)
    y.data.mul_(2)
    module = nn.Linear(2, 3).to(device)
    again = copy.deepcopy(module)
    again.load_state_dict({name: one * 2 for name, one in module.state_dict().items()})
    return near.to(device), x, y, again.weight.detach() / module.weight.detach(), again.cpu().weight.device.type


@program
def transforms(device):
    x = numbers(device, 3, 4)
    grad, jacobian = rd.func.grad(lambda v: (v**2).sum()), rd.func.jacrev(lambda v: v**2)
    return (
        rd.vmap(lambda v: v.sin().sum())(x),
        grad(x),
        jacobian(x[0]),
        rd.func.functionalize(lambda v: v.clone().add_(1))(x),
    )


@program
def recomputed(device):
    x = numbers(device, 3, 4).requires_grad_()
    y = checkpoint(lambda x: F.dropout(x.exp(), 0.5), x, use_reentrant=False)
    y.sum().backward()
    return y.detach(), x.grad


def training(make):
    def run(device):
        rd.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 1)).to(device)
        optimizer, losses = make(module.parameters()), []
        for step in range(4):
            x = numbers(device, 6, 4, seed=step)
            optimizer.zero_grad()
            loss = (module(x) - x.sum(1, keepdim=True)).pow(2).mean()
            loss.backward()
            optimizer.step()
            rd._lazy.mark_step()
            losses.append(loss.detach())
        return *losses, *[one.detach() for one in module.parameters()]

    return run


PROGRAMS["sgd"] = training(lambda p: rd.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.01))
PROGRAMS["adam"] = training(lambda p: rd.optim.Adam(p, lr=0.01))
PROGRAMS["adam_foreach"] = training(lambda p: rd.optim.AdamW(p, lr=0.01, amsgrad=True, foreach=True))
PROGRAMS["rmsprop"] = training(lambda p: rd.optim.RMSprop(p))
