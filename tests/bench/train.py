"""What a training step costs: forward, loss, backward and update of a two-layer network."""

from rows import Group

GROUP = Group()
row = GROUP.row
CLASSES = 10


def step(t, batch, width):
    """One SGD step on one fixed batch; it zeroes the gradients, as a training loop does."""
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(width, width), t.nn.ReLU(), t.nn.Linear(width, CLASSES))
    loss_of = t.nn.CrossEntropyLoss()
    optimizer = t.optim.SGD(net.parameters(), lr=0.01)
    x, y = t.randn(batch, width), t.arange(batch) % CLASSES

    def run():
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()

    return run


@row("MLP, batch 32, width 64, SGD")
def small(t):
    return step(t, 32, 64)


@row("MLP, batch 256, width 512, SGD")
def large(t):
    return step(t, 256, 512)
