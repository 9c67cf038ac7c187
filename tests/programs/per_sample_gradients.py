"""After the tutorials of torch.func: gradients of each sample, ensembles of models, Jacobians and Hessians."""

import torch
from torch import nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)


def model_of(seed):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            values = torch.arange(parameter.numel(), dtype=torch.float32).view_as(parameter)
            parameter.copy_(((values * 7 + number * 3 + seed) % 11 - 5) / 10)
    return model


model = model_of(1)
data = ((torch.arange(15.0) * 5) % 7).view(5, 3) / 7
targets = torch.tensor([0, 1, 0, 1, 1])
parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}


def loss_of(parameters, sample, target):
    logits = functional_call(model, parameters, (sample.unsqueeze(0),))
    return nn.functional.cross_entropy(logits, target.unsqueeze(0))


per_sample, losses = vmap(grad_and_value(loss_of), in_dims=(None, 0, 0))(parameters, data, targets)
print({name: tuple(g.shape) for name, g in per_sample.items()}, losses)
nn.functional.cross_entropy(model(data), targets).backward()
for name, parameter in model.named_parameters():
    print(name, torch.allclose(parameter.grad, per_sample[name].mean(0), atol=1e-6))

models = [model_of(seed) for seed in range(3)]
stacked, buffers = stack_module_state(models)
base = models[0]


def call(parameters, buffers, x):
    return functional_call(base, (parameters, buffers), (x,))


together = vmap(call, in_dims=(0, 0, None))(stacked, buffers, data)
print(together.shape, torch.allclose(together, torch.stack([m(data) for m in models]), atol=1e-6))


def predict(weight, bias, x):
    return (weight @ x + bias).tanh()


weight, bias, x = torch.arange(6.0).view(2, 3) / 10, torch.zeros(2), torch.tensor([1.0, -1.0, 0.5])
print(jacrev(predict, argnums=2)(weight, bias, x))
print(torch.allclose(jacrev(predict, argnums=2)(weight, bias, x), jacfwd(predict, argnums=2)(weight, bias, x)))
print(hessian(lambda x: predict(weight, bias, x).sum())(x))
value, pull = vjp(lambda x: predict(weight, bias, x), x)
print(value, pull(torch.ones(2)))
print(jvp(lambda x: predict(weight, bias, x), (x,), (torch.tensor([1.0, 0.0, 0.0]),)))
print(grad(grad(lambda x: x**4))(torch.tensor(2.0)))
print(vmap(lambda a, b: a @ b, in_dims=(0, 1), out_dims=1)(torch.ones(3, 2, 4), torch.ones(4, 3, 5)).shape)
print(vmap(lambda x: x.sum(), chunk_size=2)(torch.arange(10.0).view(5, 2)))
try:
    vmap(lambda x: x.item())(torch.ones(2))
except RuntimeError as problem:
    print(type(problem).__name__)
