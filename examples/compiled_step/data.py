"""Writes train.safetensors and test.safetensors: MNIST from its four files, or generated patterns without them.

Usage: python3 data.py [DIRECTORY]
"""
import gzip
import pathlib
import sys

import torch

from export_step import write_safetensors


def read_idx(path):
    """An IDX file of bytes, plain or gzipped."""
    raw = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    sizes = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return torch.frombuffer(bytearray(raw[4 + 4 * raw[3]:]), dtype=torch.uint8).reshape(sizes)


def mnist(directory, part):
    return {"images": read_idx(directory / f"{part}-images-idx3-ubyte"),
            "labels": read_idx(directory / f"{part}-labels-idx1-ubyte").to(torch.int64)}


def generated(records, seed):
    """One random pattern per class, with noise."""
    patterns = torch.rand((10, 28, 28), generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (records,), generator=generator)
    noise = torch.randn((records, 28, 28), generator=generator)
    images = (patterns[labels] + 0.5 * noise).clamp(0, 1) * 255
    return {"images": images.to(torch.uint8), "labels": labels}


def main():
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    for name, part, records in (("train", "train", 6400), ("test", "t10k", 1000)):
        content = mnist(directory, part) if directory else generated(records, len(part))
        write_safetensors(f"{name}.safetensors", content)
        print(f"{name}.safetensors: {len(content['labels'])} records")


if __name__ == "__main__":
    main()
