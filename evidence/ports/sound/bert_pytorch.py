"""BERT of transformers with a classifier, in PyTorch.

python bert_pytorch.py DATA.npz
"""

import argparse

import numpy as np
import torch
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification

parser = argparse.ArgumentParser()
parser.add_argument("data")
options = parser.parse_args()
data = np.load(options.data)

config = BertConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
    max_position_embeddings=12,
    hidden_act="gelu_new",  # by tanh, as KerasHub has it
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
    num_labels=3,
    attn_implementation="eager",
)
network = BertForSequenceClassification(config)
network.load_state_dict({name: torch.from_numpy(data[name]) for name in data if "." in name}, strict=False)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
tensors = [torch.from_numpy(data[name]).long().split(4) for name in ("tokens", "mask", "segments", "labels")]
losses = []
for tokens, mask, segments, labels in zip(*tensors, strict=True):
    logits = network(tokens, attention_mask=mask, token_type_ids=segments).logits
    loss = functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("loss", np.mean(losses))
