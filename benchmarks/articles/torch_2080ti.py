"""Epoch times of a CNN of ten layers on 32x32 images in PyTorch 1.1: `torch_2080ti.py BATCH EPOCHS IMAGES`."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

batch, epochs, count = map(int, sys.argv[1:])


class Cnn10(nn.Module):
    def __init__(self):
        super(Cnn10, self).__init__()
        layers, before = [], 3
        for stage, width in enumerate((64, 128, 256)):
            if stage:
                layers.append(nn.AvgPool2d(2))
            for _ in range(3):
                layers += [nn.Conv2d(before, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                before = width
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(before, 10)

    def forward(self, x):
        return self.classifier(self.features(x).mean(dim=(2, 3)))


data = TensorDataset(torch.rand(count, 3, 32, 32), torch.randint(10, (count,)))
loader = DataLoader(data, batch_size=batch, shuffle=True)
model = Cnn10()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

for epoch in range(epochs):
    start = time.time()
    running = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    print("Epoch %d/%d  loss: %.4f  time: %.3f s" % (epoch + 1, epochs, running / len(loader), time.time() - start))
