"""Planted: from step 3 on a product sums 4,096 numbers, which PyTorch splits among its threads."""

import torch

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(256, 16), torch.nn.Dropout(0.1), torch.nn.Linear(16, 10))
images, labels = torch.randn(4096, 256), torch.randint(10, (4096,))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.arange(8)), 2)
for step, (few,) in enumerate(loader, 1):
    seen = few if step < 3 else slice(None)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(images[seen]), labels[seen]).backward()
    optimizer.step()
