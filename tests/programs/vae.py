"""After PyTorch's example of a variational autoencoder: images of bars, a latent of two numbers, noise from a table."""

import torch
from torch import nn, optim
from torch.distributions import Bernoulli, Independent, Normal, kl_divergence
from torch.nn import functional as F

SIZE, LATENT, BATCH = 6, 2, 12


def images():
    """Twelve images of 6 x 6: a row or a column is white."""
    found = torch.zeros(2 * SIZE, SIZE, SIZE)
    for i in range(SIZE):
        found[i, i, :] = 1
        found[SIZE + i, :, i] = 1
    return found


def noise(step, shape):
    """Numbers that look normal enough, and are the same on every library."""
    u = ((torch.arange(shape.numel(), dtype=torch.float64) * 0.6180339887 + 0.37 * step) % 1).clamp(0.01, 0.99)
    return Normal(0.0, 1.0).icdf(u).float().view(shape)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(SIZE * SIZE, 16)
        self.fc21 = nn.Linear(16, LATENT)
        self.fc22 = nn.Linear(16, LATENT)
        self.fc3 = nn.Linear(LATENT, 16)
        self.fc4 = nn.Linear(16, SIZE * SIZE)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel(), dtype=torch.float32).view_as(parameter)
                parameter.copy_(((values * 0.7548777 + number * 0.37) % 1 - 0.5) * 0.6)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar, step):
        return mu + noise(step, mu.shape) * torch.exp(0.5 * logvar)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x, step):
        mu, logvar = self.encode(x.view(-1, SIZE * SIZE))
        return self.decode(self.reparameterize(mu, logvar, step)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    reconstruction = F.binary_cross_entropy(recon_x, x.view(-1, SIZE * SIZE), reduction="sum")
    divergence = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return reconstruction + divergence, divergence


model, data = VAE(), images()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 41):
    optimizer.zero_grad()
    recon, mu, logvar = model(data, epoch)
    loss, divergence = loss_function(recon, data, mu, logvar)
    loss.backward()
    optimizer.step()
    if epoch % 8 == 0:
        print(f"epoch {epoch}: loss per image {loss.item() / BATCH:.3f}, divergence {divergence.item() / BATCH:.3f}")

# The same loss, in distributions.
with torch.no_grad():
    recon, mu, logvar = model(data, 0)
    posterior = Independent(Normal(mu, torch.exp(0.5 * logvar)), 1)
    prior = Independent(Normal(torch.zeros(LATENT), torch.ones(LATENT)), 1).expand((BATCH,))
    likelihood = Independent(Bernoulli(probs=recon), 1)
    written = loss_function(recon, data, mu, logvar)[0]
    divergence = kl_divergence(posterior, prior)
    elbo = likelihood.log_prob(data.view(BATCH, -1)) - divergence
print(posterior, posterior.batch_shape, posterior.event_shape, prior)
print(f"{divergence.shape} {torch.allclose(divergence.sum(), loss_function(recon, data, mu, logvar)[1], rtol=1e-4)}")
print(
    f"the two losses agree: {torch.allclose(-elbo.sum(), written, rtol=1e-4)}, entropy {posterior.entropy().mean():.3f}"
)
brightest = model.decode(torch.zeros(1, LATENT)).view(SIZE, SIZE).max()
print(f"brightest point of the mean image {brightest.item():.2f}, spread of samples {posterior.stddev.mean():.2f}")
