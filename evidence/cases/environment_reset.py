"""Reinforcement learning: after a resume the environment begins an episode, where the whole run was in the middle of one.

source: DLR-RM/stable-baselines3#1643, #326
answers: restart same, kill differs
cause: place in the data|another batch
"""

import math
import random

import torch
from case import finish, restored, save


class Pole:
    """A pole on a cart, by its angle and speed, pushed to one side or the other."""

    def __init__(self) -> None:
        self.random = random.Random(0)
        self.reset()

    def reset(self) -> None:
        self.angle, self.speed = self.random.uniform(-0.05, 0.05), 0.0

    def step(self, action: int) -> float:
        self.speed += 0.05 * math.sin(self.angle) + (0.02 if action else -0.02)
        self.angle += self.speed
        if abs(self.angle) < 0.5:
            return 1.0
        self.reset()
        return 0.0


torch.manual_seed(0)
pole = Pole()
policy = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
begin = 0
if kept := restored():
    policy.load_state_dict(kept["policy"])
    optimizer.load_state_dict(kept["optimizer"])
    torch.set_rng_state(kept["generator"])
    begin = kept["step"]
for step in range(begin, 40):
    states, actions, rewards = [], [], []
    for _ in range(7):
        state = torch.tensor([pole.angle, pole.speed])
        with torch.no_grad():
            action = int(torch.multinomial(policy(state).softmax(0), 1))
        states.append(state)
        actions.append(action)
        rewards.append(pole.step(action))
    optimizer.zero_grad()
    logs = policy(torch.stack(states)).log_softmax(1)[torch.arange(7), torch.tensor(actions)]
    (-(logs * (torch.tensor(rewards) - 0.5)).mean()).backward()
    optimizer.step()
    if step % 4 == 3:
        state_dicts = {"policy": policy.state_dict(), "optimizer": optimizer.state_dict()}
        save(**state_dicts, generator=torch.get_rng_state(), step=step + 1)  # the fault: without `pole`
finish(policy)
