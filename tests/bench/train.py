"""What a training step costs, forward, loss, backward and update: of a network of two layers, a GPT, a CNN."""

from rows import Group

GROUP = Group()
row = GROUP.row
CLASSES = 10
LETTERS = 65  # as many as Shakespeare used, and a few


def step(t, net, optimizer, x, y):
    """One step on one fixed batch; it zeroes the gradients, as a training loop does."""
    loss_of = t.nn.CrossEntropyLoss()

    def run():
        optimizer.zero_grad()
        loss_of(net(x), y).backward()
        optimizer.step()

    return run


# --- a network of two layers -----------------------------------------------------------------------------------------


def two_layers(t, batch, width):
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(width, width), t.nn.ReLU(), t.nn.Linear(width, CLASSES))
    return step(t, net, t.optim.SGD(net.parameters(), lr=0.01), t.randn(batch, width), t.arange(batch) % CLASSES)


@row("MLP, batch 32, width 64, SGD")
def small(t):
    return two_layers(t, 32, 64)


@row("MLP, batch 32, width 64, Adam", target=0.8)
def small_adam(t):
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(64, 64), t.nn.ReLU(), t.nn.Linear(64, CLASSES))
    return step(t, net, t.optim.Adam(net.parameters()), t.randn(32, 64), t.arange(32) % CLASSES)


@row("MLP, batch 256, width 512, SGD")
def large(t):
    return two_layers(t, 256, 512)


# --- a GPT of two blocks ---------------------------------------------------------------------------------------------


def gpt(t, batch, length, width, heads=4):
    """A language model of letters, as tutorials write it, with AdamW."""
    nn = t.nn

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            n, length, _ = x.shape
            q, k, v = (
                part.view(n, length, heads, width // heads).transpose(1, 2) for part in self.mixed(x).split(width, 2)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(n, length, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.attention = nn.LayerNorm(width), Attention()
            self.between = nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.before(x))
            return x + self.mlp(self.between(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.letters, self.places = nn.Embedding(LETTERS, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(Block(), Block())
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, LETTERS, bias=False)

        def forward(self, x):
            x = self.letters(x) + self.places(t.arange(x.shape[1]))
            return self.head(self.last(self.blocks(x))).flatten(0, 1)

    t.manual_seed(0)
    net = GPT()
    x = t.randint(LETTERS, (batch, length))
    return step(t, net, t.optim.AdamW(net.parameters(), lr=3e-4), x, x.roll(-1, 1).flatten())


@row("GPT of 2 blocks, batch 4, length 64, width 64, AdamW")
def small_gpt(t):
    return gpt(t, 4, 64, 64)


@row("GPT of 2 blocks, batch 8, length 128, width 256, AdamW")
def large_gpt(t):
    return gpt(t, 8, 128, 256)


# --- a small CNN -----------------------------------------------------------------------------------------------------


@row("CNN of 2 convolutions, batch 32, 28 x 28, Adam")
def cnn(t):
    t.manual_seed(0)
    nn = t.nn
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 7 * 7, CLASSES),
    )
    return step(t, net, t.optim.Adam(net.parameters()), t.randn(32, 1, 28, 28), t.arange(32) % CLASSES)
