"""The lesson of a curriculum is in no checkpoint: a resumed run begins with the short sequences of the first one.

source: Unity-Technologies/ml-agents#3325, #2993
answers: restart same, kill differs
cause: shape.*curriculum|what sets the shape of a batch
"""

import torch
from case import finish, restored, save

torch.manual_seed(0)
tokens = torch.randint(20, (40, 8, 17))
model = torch.nn.Sequential(torch.nn.Embedding(20, 16), torch.nn.Linear(16, 20))
optimizer, begin, lesson = torch.optim.Adam(model.parameters(), lr=0.02), 0, 1
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    begin = kept["step"]
for count, step in enumerate(range(begin, 40), 1):
    batch = tokens[step, :, : 4 * lesson + 1]
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten()).backward()
    optimizer.step()
    lesson = min(1 + count // 8, 4)  # the fault: it follows the steps of this process
    if step % 4 == 3:
        save(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step + 1)
finish(model)
