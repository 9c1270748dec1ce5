"""Images per second at a batch size, after some steps that nobody counts: `batch_throughput.py BATCH`. PyTorch 2."""

import sys
import time

import torch
from torch import nn

batch = int(sys.argv[1])
model = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
images, labels = torch.rand(batch, 1, 28, 28), torch.randint(10, (batch,))


def train_step():
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()


for _ in range(50):
    train_step()
for _ in range(5):
    start = time.time()
    for _ in range(200):
        train_step()
    seconds = (time.time() - start) / 200
    print("batch %d: %.6f s (%.1f images/s)" % (batch, seconds, batch / seconds))
