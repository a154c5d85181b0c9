"""The loop of train_segments.cc (bare) in Python: prints "ready", then the seconds of one batch for every
input line."""
import os
import sys
import time

import torch
from torch import nn

WARM_UP = 5


def make_model(name):
    if name == "mlp":
        net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
        return net, torch.randn(20000, 16), torch.randint(0, 4, (20000,)), 32, 3000
    net = nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Dropout(0.25), nn.Flatten(), nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Dropout(0.5),
                        nn.Linear(128, 10))
    return net, torch.randn(20000, 1, 28, 28), torch.randint(0, 10, (20000,)), 64, 8


def main():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    net, data, target, batch_size, segment = make_model(sys.argv[1])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    order = torch.randperm(len(data))
    position = batch = 0
    total = 0.0
    start = None
    while True:
        if batch >= WARM_UP and (batch - WARM_UP) % segment == 0:
            print("ready" if start is None else f"{(time.perf_counter() - start) / segment:.9f}", flush=True)
            if not sys.stdin.readline():
                return
            start = time.perf_counter()
        if position + batch_size > len(data):
            position = 0
        indices = order[position:position + batch_size]
        position += batch_size
        loss = nn.functional.cross_entropy(net(data[indices]), target[indices])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        batch += 1


main()
