"""A sound training in PyTorch: two networks with an optimizer each, and noise."""

import os
import sys
import time

import torch

torch.manual_seed(0)
real = torch.randn(16, 32, 2) * 0.5 + 1
maker = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
critic = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.LeakyReLU(0.2), torch.nn.Linear(16, 1))
of_maker = torch.optim.Adam(maker.parameters(), lr=0.01, betas=(0.5, 0.9))
of_critic = torch.optim.RMSprop(critic.parameters(), lr=0.01)
parts = {"maker": maker, "critic": critic, "of_maker": of_maker, "of_critic": of_critic}
path, done = os.path.join(sys.argv[1], "checkpoint.pt"), 0
if "--resume" in sys.argv:
    kept = torch.load(path)
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    torch.set_rng_state(kept["generator"])
    done = kept["step"]
loss = torch.nn.functional.binary_cross_entropy_with_logits
for step in range(done, 16):
    of_critic.zero_grad()
    made = maker(torch.randn(32, 4))
    (loss(critic(real[step]), torch.ones(32, 1)) + loss(critic(made.detach()), torch.zeros(32, 1))).backward()
    of_critic.step()
    of_maker.zero_grad()
    loss(critic(made), torch.ones(32, 1)).backward()
    of_maker.step()
    kept = {"step": step + 1, "generator": torch.get_rng_state()}
    torch.save(kept | {name: part.state_dict() for name, part in parts.items()}, f"{path}.new")
    os.replace(f"{path}.new", path)
    time.sleep(float(os.environ.get("PAUSE", "0.05")))
