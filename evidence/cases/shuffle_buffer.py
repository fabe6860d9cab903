"""What the buffer of a streaming shuffle holds is not in its state: some examples are lost, some come twice.

source: huggingface/datasets#7901, PR 8408
answers: restart same, kill differs
cause: place in the data|another batch
"""

from collections.abc import Iterator

import torch
from case import finish, restored, save, update


class Shuffled:
    """A stream of examples through a buffer from which a random one is taken."""

    def __init__(self, examples: torch.Tensor) -> None:
        self.examples, self.read = examples, 0
        self.generator = torch.Generator().manual_seed(3)

    def __iter__(self) -> Iterator[torch.Tensor]:
        buffer: list[torch.Tensor] = []
        while self.read < len(self.examples):
            buffer.append(self.examples[self.read])
            self.read += 1
            if len(buffer) == 16:
                yield buffer.pop(int(torch.randint(16, (1,), generator=self.generator)))

    def state_dict(self) -> dict[str, object]:
        return {"read": self.read, "generator": self.generator.get_state()}  # the fault: without the buffer

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.read = int(str(state["read"]))
        assert isinstance(state["generator"], torch.Tensor)
        self.generator.set_state(state["generator"])


torch.manual_seed(0)
stream = Shuffled(torch.randn(256, 8))
model = torch.nn.Linear(8, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
step = 0
if kept := restored():
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])
    stream.load_state_dict(kept["stream"])
    step = kept["step"]
batch: list[torch.Tensor] = []
for example in stream:
    batch.append(example)
    if len(batch) == 4:
        update(model, optimizer, torch.stack(batch))
        batch.clear()
        step += 1
        if step % 5 == 0:
            save(model=model.state_dict(), optimizer=optimizer.state_dict(), stream=stream.state_dict(), step=step)
finish(model)
