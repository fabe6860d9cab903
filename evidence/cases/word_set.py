"""A vocabulary is numbered in the order of a set of words, which Python's hash seed decides.

source: huggingface/datasets#2496, #2415
answers: restart differs
cause: hash
"""

import torch
from case import finish, update

TEXT = "the cat sat on the mat and the dog sat on the log while a bird sang in a tree over the old stone wall"

numbers = {word: number for number, word in enumerate(set(TEXT.split()))}
tokens = torch.tensor([numbers[word] for word in TEXT.split()])
torch.manual_seed(0)
embedding = torch.nn.Embedding(len(numbers), 8)
model = torch.nn.Sequential(embedding, torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(4):
    for batch in tokens.split(6):
        update(model, optimizer, batch)
finish(model)
