#!/usr/bin/env python3
"""Independent Python versions of the examples' models, from the papers' equations: reference.py PROBE MODEL.

The C++ model (see probe.cc) gets the same random weights and images. Its scores and gradients must agree
within 1e-5."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import torch

DTYPES = {torch.float32: "F32", torch.int64: "I64"}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            dtype = {code: kind for kind, code in DTYPES.items()}[entry["dtype"]]
            flat = torch.frombuffer(bytearray(raw[8 + size + begin:8 + size + end]), dtype=dtype)
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


# ---- ShiftViT (arXiv 2201.10801), section 3. Every operation takes and returns plain float64 arrays. ----
DEPTHS, DIM, PATCH, N_DIV, CLASSES = (2, 1, 2), 24, 2, 12, 5


def shiftvit_weights(draw):
    weights = {"embed.0.weight": draw(DIM, 3, PATCH, PATCH), "embed.0.bias": draw(DIM),
               "embed.1.weight": draw(DIM), "embed.1.bias": draw(DIM)}
    at, dim = 0, DIM
    for stage, depth in enumerate(DEPTHS):
        for _ in range(depth):
            weights.update({f"stages.{at}.gamma": draw(dim, 1, 1), f"stages.{at}.norm.weight": draw(dim),
                            f"stages.{at}.norm.bias": draw(dim), f"stages.{at}.fc1.weight": draw(2 * dim, dim, 1, 1),
                            f"stages.{at}.fc1.bias": draw(2 * dim), f"stages.{at}.fc2.weight": draw(dim, 2 * dim, 1, 1),
                            f"stages.{at}.fc2.bias": draw(dim)})
            at += 1
        if stage + 1 < len(DEPTHS):
            weights.update({f"stages.{at}.weight": draw(dim), f"stages.{at}.bias": draw(dim),
                            f"stages.{at + 1}.weight": draw(2 * dim, dim, 2, 2)})
            at, dim = at + 2, 2 * dim
    weights.update({"last.weight": draw(dim), "last.bias": draw(dim), "head.weight": draw(CLASSES, dim),
                    "head.bias": draw(CLASSES)})
    return weights


def normalized(x, weight, bias):
    """Layer normalization over channels and pixels, with one weight and bias per channel."""
    mean = x.mean((1, 2, 3), keepdim=True)
    variance = ((x - mean) ** 2).mean((1, 2, 3), keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt() * weight[:, None, None] + bias[:, None, None]


def patches(x, weight, bias=None):
    """Non-overlapping patches, each multiplied by the same matrix."""
    b, c, h, w = x.shape
    p = weight.shape[2]
    x = x[:, :, :h // p * p, :w // p * p].reshape(b, c, h // p, p, w // p, p)
    out = torch.einsum("bciyjx,ocyx->boij", x.permute(0, 1, 2, 3, 4, 5), weight)
    return out if bias is None else out + bias[:, None, None]


def shifted(x):
    """The paper's shift: moves the first four channel groups by one pixel each, with zeros at the border."""
    out, group = torch.zeros_like(x), x.shape[1] // N_DIV
    height, width = x.shape[2:]
    for g, (di, dj) in enumerate(((0, 1), (0, -1), (1, 0), (-1, 0))):
        for i in range(height):
            for j in range(width):
                if 0 <= i + di < height and 0 <= j + dj < width:
                    out[:, g * group:(g + 1) * group, i, j] = x[:, g * group:(g + 1) * group, i + di, j + dj]
    out[:, 4 * group:] = x[:, 4 * group:]
    return out


def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / 2 ** 0.5))


def shiftvit(w, x):
    x = normalized(patches(x, w["embed.0.weight"], w["embed.0.bias"]), w["embed.1.weight"], w["embed.1.bias"])
    at = 0
    for stage, depth in enumerate(DEPTHS):
        for _ in range(depth):
            name = f"stages.{at}."
            x = shifted(x)
            inner = normalized(x, w[name + "norm.weight"], w[name + "norm.bias"])
            inner = gelu(patches(inner, w[name + "fc1.weight"], w[name + "fc1.bias"]))
            x = x + w[name + "gamma"] * patches(inner, w[name + "fc2.weight"], w[name + "fc2.bias"])
            at += 1
        if stage + 1 < len(DEPTHS):
            x = normalized(x, w[f"stages.{at}.weight"], w[f"stages.{at}.bias"])
            x = patches(x, w[f"stages.{at + 1}.weight"])
            at += 2
    x = normalized(x, w["last.weight"], w["last.bias"]).mean((2, 3))
    return x @ w["head.weight"].T + w["head.bias"]


def compare_shiftvit(probe):
    torch.manual_seed(0)
    weights = shiftvit_weights(lambda *shape: torch.randn(*shape) * 0.3)
    images, labels = torch.randn(3, 3, 20, 28), torch.tensor([0, 3, 4])
    exact = {name: tensor.double().requires_grad_() for name, tensor in weights.items()}
    scores = shiftvit(exact, images.double())
    (scores.logsumexp(1) - scores[torch.arange(3), labels]).mean().backward()
    with tempfile.TemporaryDirectory() as folder:
        write_safetensors(folder + "/in", {**{"model.0." + name: value for name, value in weights.items()},
                                           "images": images, "labels": labels})
        subprocess.run([probe, "shiftvit", folder + "/in", folder + "/out"], check=True, timeout=120)
        got = read_safetensors(folder + "/out")
    worst = ("scores", (got["images"] - scores).abs().max().item() / scores.abs().max().item())
    for name, tensor in exact.items():
        miss = (got["model.0." + name] - tensor.grad).abs().max().item() / max(1, tensor.grad.abs().max().item())
        worst = max(worst, (name, miss), key=lambda pair: pair[1])
    print(f"largest difference {worst[1]:.3g} in {worst[0]} of {len(exact)} gradients and the scores")
    return worst[1]


if __name__ == "__main__":
    sys.exit(0 if compare_shiftvit(sys.argv[1]) <= 1e-5 else 1)
