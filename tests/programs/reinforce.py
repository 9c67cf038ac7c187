"""After PyTorch's example of REINFORCE: a policy learns, here to drive a cart to a goal on a track of eleven places.

What a policy draws is taken from Python's own random numbers, which are the same on every library.
"""

import random

import torch
from torch import nn, optim
from torch.distributions import Categorical

PLACES, GOAL, LONGEST = 11, 9, 20


class Track:
    """A cart at a place between 0 and 10; each step costs, the goal pays."""

    def reset(self):
        self.place, self.steps = 5, 0
        return self.seen()

    def seen(self):
        return torch.tensor([self.place / PLACES, (GOAL - self.place) / PLACES, self.steps / LONGEST])

    def step(self, action):
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), PLACES - 1)
        self.steps += 1
        done = self.place == GOAL or self.steps == LONGEST
        return self.seen(), 1.0 if self.place == GOAL else -0.05, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 8)
        self.affine2 = nn.Linear(8, 2)
        self.saved_log_probs, self.rewards, self.entropies = [], [], []
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                values = torch.arange(parameter.numel(), dtype=torch.float32).view_as(parameter)
                parameter.copy_(((values * 0.7548777 + number * 0.37) % 1 - 0.5) / 4)

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=1)


policy, track, chance = Policy(), Track(), random.Random(3)
optimizer = optim.Adam(policy.parameters(), lr=3e-2)
eps = torch.finfo(torch.float32).eps


def select_action(state):
    distribution = Categorical(policy(state.unsqueeze(0)))
    action = (torch.tensor([chance.random()]) > distribution.probs[:, 0]).long()
    policy.saved_log_probs.append(distribution.log_prob(action))
    policy.entropies.append(distribution.entropy())
    return action.item()


def finish_episode():
    total, returns = 0.0, []
    for reward in policy.rewards[::-1]:
        total = reward + 0.99 * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    losses = [-log_prob * r for log_prob, r in zip(policy.saved_log_probs, returns, strict=True)]
    optimizer.zero_grad()
    loss = torch.cat(losses).sum() - 0.01 * torch.cat(policy.entropies).sum()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(policy.parameters(), 5.0)
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:], policy.entropies[:]
    return loss.item(), norm.item()


running = -1.0
for episode in range(1, 41):
    state, done, gained = track.reset(), False, 0.0
    while not done:
        state, reward, done = track.step(select_action(state))
        policy.rewards.append(reward)
        gained += reward
    running = 0.1 * gained + 0.9 * running
    loss, norm = finish_episode()
    if episode % 8 == 0:
        print(f"episode {episode}: {track.steps} steps, gained {gained:.2f}, running {running:.3f}, loss {loss:.2f}")

final = Categorical(policy(track.reset().unsqueeze(0)))
print(final, [round(p, 2) for p in final.probs[0].tolist()], final.param_shape, final.batch_shape)
print("a goal-seeking policy:", bool(final.probs[0, 1] > 0.5), final.enumerate_support().tolist())
try:
    Categorical(probs=torch.tensor([[-1.0, 2.0]]))
except ValueError as refused:
    print(str(refused).splitlines()[0])
