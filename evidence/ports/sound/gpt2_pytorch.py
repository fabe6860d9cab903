"""GPT-2 of transformers, in PyTorch.

python gpt2_pytorch.py DATA.npz
"""

import argparse

import numpy as np
import torch
from torch.nn import functional
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)

size = {"vocab_size": 64, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
silent = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
network = GPT2LMHeadModel(GPT2Config(**size, **silent, use_cache=False, attn_implementation="eager"))
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name}, strict=False)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
losses = []
for batch in torch.from_numpy(data["tokens"]).long().split(4):
    logits = network(batch).logits[:, :-1]
    loss = functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
