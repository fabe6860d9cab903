r"""The sampler's generator is not in the checkpoint: the branch that saves it is never reached, so epoch 0's order comes again.

source: huggingface/accelerate#3996, PR 4232
answers: restart same, kill differs
cause: (epoch|order|sampler|generator|place in the data).*(not restored|earlier|again)|batch.*(that|those) of steps? \d+
"""

import torch
from case import finish, restored, save, update
from torch.utils.data import BatchSampler, DataLoader, RandomSampler

torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
generator = torch.Generator().manual_seed(7)
loader = DataLoader(examples, batch_sampler=BatchSampler(RandomSampler(examples, generator=generator), 8, False))
first_epoch = skipped = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    if "generator" in kept:
        generator.set_state(kept["generator"])
    first_epoch, skipped = kept["epoch"], kept["done"]
for epoch in range(first_epoch, 4):
    for done, batch in enumerate(loader, 1):
        if epoch == first_epoch and done <= skipped:
            continue
        update(model, optimizer, batch)
        if (epoch * 8 + done) % 3 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "done": done}
            if isinstance(loader.sampler, RandomSampler):  # the fault: a loader of batches has it one level below
                state["generator"] = generator.get_state()
            save(**state)
finish(model)
