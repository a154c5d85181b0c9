#!/usr/bin/env python3
"""Compares the loss curve of examples/imagenet with a ResNet-18 in Python.

Usage: curve.py PROGRAM BATCHES RATE TOLERANCE. Both start from the same random weights and train on the same
batches of CIFAR-10's format in the same order. With DET_CIFAR10 (a folder of the binary version) the data is
CIFAR-10, otherwise noise with a bar at a position that encodes the label."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn

from reference import write_safetensors

BATCH = 32
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Block(nn.Module):
    """Figure 2 of He et al., 2015, with batch normalization after each convolution."""

    def __init__(self, fan_in, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or fan_in != width:
            self.downsample = nn.Sequential(nn.Conv2d(fan_in, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        out = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(out + (x if self.downsample is None else self.downsample(x)))


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        fan_in = 64
        for stage, width in enumerate((64, 128, 256, 512), 1):
            setattr(self, f"layer{stage}", nn.Sequential(Block(fan_in, width, 1 if stage == 1 else 2),
                                                         Block(width, width, 1)))
            fan_in = width
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 3, 2, 1)
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


def made_up(count):
    records = torch.randint(0, 100, (count, 3073), dtype=torch.uint8)
    labels = torch.randint(0, 10, (count,))
    records[:, 0] = labels.to(torch.uint8)
    images = records[:, 1:].reshape(count, 3, 32, 32)
    for i, label in enumerate(labels.tolist()):
        images[i, :, 2 * label + 4:2 * label + 6] = 220
    records[:, 1:] = images.reshape(count, -1)
    return records


def main(program, batches, rate, tolerance):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    data = os.environ.get("DET_CIFAR10")
    with tempfile.TemporaryDirectory() as folder:
        if data is None:
            for i in range(1, 6):
                pathlib.Path(folder, f"data_batch_{i}.bin").write_bytes(
                    made_up(max(BATCH, BATCH * (batches // 5 + 1))).numpy().tobytes())
            pathlib.Path(folder, "test_batch.bin").write_bytes(made_up(100).numpy().tobytes())
            data = folder
        raw = b"".join(pathlib.Path(data, f"data_batch_{i}.bin").read_bytes() for i in range(1, 6))
        records = torch.frombuffer(bytearray(raw), dtype=torch.uint8).reshape(-1, 3073)
        model = ResNet18()
        write_safetensors(folder + "/initial.safetensors", model.state_dict())
        config = (ROOT / "examples" / "imagenet" / "cifar10.yaml").read_text()
        for old, new in (("dir: data ", f"dir: {data} "), ('pretrained: ""', f"pretrained: {folder}/initial.safetensors"),
                         ("shuffle: true", "shuffle: false"), ("global_batch_size: 128", f"global_batch_size: {BATCH}"),
                         ("lr: 0.05", f"lr: {rate}"), ("epochs: 10", f"batches: {batches}"),
                         ("  epochs: 1\n", "  batches: 1000000\nscheduling_unit: 1\n")):
            assert old in config, old
            config = config.replace(old, new)
        pathlib.Path(folder, "run.yaml").write_text(config)
        out = subprocess.run([os.path.abspath(program), "run.yaml"], cwd=folder, check=True, capture_output=True, text=True,
                             env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=1200).stdout
        theirs = [float(loss) for loss in re.findall(r"training +batch \d+ +loss (\S+)", out)]

        optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=5e-4)
        worst = 0
        assert len(theirs) == batches, f"{len(theirs)} losses of {batches}"
        for i, their in enumerate(theirs):
            part = records[i * BATCH:(i + 1) * BATCH]
            # (x / 255 - 0.5) / 0.5, with the same two roundings as the example's data set.
            images = part[:, 1:].reshape(-1, 3, 32, 32).float() * numpy.float32(2 / 255) - 1
            loss = nn.functional.cross_entropy(model(images), part[:, 0].long())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            worst = max(worst, abs(loss.item() - their) / max(1e-2, loss.item()))
            if (i + 1) % 20 == 0:
                print(f"{i + 1} batches: {worst:.2g}", flush=True)
        print(f"{batches} batches: losses {theirs[0]:.4f} to {theirs[-1]:.4f}, largest relative difference {worst:.3g}")
        sys.exit(0 if worst <= tolerance else 1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]))
