r"""The resumed epoch is right, and the one after it has the same order once more.

source: huggingface/accelerate#3996, PR 4233
answers: restart same, kill differs
cause: (next|epoch|again|same order|set back).*|batch.*(that|those) of steps? \d+
"""

import torch
from case import finish, restored, save, update

torch.manual_seed(0)
examples = torch.randn(64, 8)
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
generator = torch.Generator().manual_seed(5)
first_epoch = skipped = 0
kept = restored()
if kept:
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    first_epoch, skipped = kept["epoch"], kept["done"]
for epoch in range(first_epoch, 5):
    if kept and epoch <= first_epoch + 1:
        generator.set_state(kept["generator"])  # the fault: in the next epoch, too
    before = generator.get_state()
    for done, indices in enumerate(torch.randperm(64, generator=generator).split(8), 1):
        if epoch == first_epoch and done <= skipped:
            continue
        update(model, optimizer, examples[indices])
        if (epoch * 8 + done) % 3 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "generator": before}
            save(**state, epoch=epoch, done=done)
finish(model)
