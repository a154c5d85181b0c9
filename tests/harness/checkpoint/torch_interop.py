"""The Python side of the checkpoint tests: reads det's files with torch.load and writes Python's files.

Usage: torch_interop.py read FILE | continue FILE OUT | write DIRECTORY | malicious FILE WITNESS | foreign FILE
"""
import collections
import inspect
import json
import os
import pickle
import random
import sys

import numpy
import torch


def plain(value):
    """Tensors as lists, so that the result can be printed."""
    if isinstance(value, torch.Tensor):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": value.double().flatten().tolist()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def network():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3, bias=False), torch.nn.BatchNorm2d(2), torch.nn.Flatten(),
                               torch.nn.Linear(8, 3))


def images():
    return torch.arange(2 * 16).reshape(2, 1, 4, 4).float().mul(0.7).sin()


def optimizers(model):
    """Optimizers by name, with the options of the test's C++ side."""
    return {
        "sgd": torch.optim.SGD(model.parameters(), lr=0.1),
        "momentum": torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01),
        "adam": torch.optim.Adam(model.parameters(), lr=0.01),
        "amsgrad": torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True),
        "adamw": torch.optim.AdamW(model.parameters(), lr=0.01),
        "rmsprop": torch.optim.RMSprop(model.parameters(), lr=0.01, momentum=0.9, centered=True),
        "adagrad": torch.optim.Adagrad(model.parameters(), lr=0.1),
        "adadelta": torch.optim.Adadelta(model.parameters(), lr=0.5),
        "adamax": torch.optim.Adamax(model.parameters(), lr=0.01),
        "nadam": torch.optim.NAdam(model.parameters(), lr=0.01, foreach=True),  # see optim/golden.py
        "radam": torch.optim.RAdam(model.parameters(), lr=0.01),
        "asgd": torch.optim.ASGD(model.parameters(), lr=0.1, t0=1),
        "rprop": torch.optim.Rprop(model.parameters(), lr=0.01),
        "lbfgs": torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3),
    }


def step(model, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = model(images()).square().mean()
        loss.backward()
        return loss

    optimizer.step(closure)


def load_weights_only(path):
    """torch.load(weights_only=True), with a workaround for versions that do not support Python's floats.

    PyTorch 1.13 lacks that one opcode and cannot load its own optimizers' states either; 2.0 added it.
    """
    try:
        return torch.load(path, weights_only=True)
    except pickle.UnpicklingError as error:
        if "Unsupported operand 71" not in str(error):
            raise
    module = torch._weights_only_unpickler
    source = inspect.getsource(module)
    floats = "elif key[0] == 71: self.append(unpack('>d', read(8))[0])\n            "
    known = "elif key[0] == BININT[0]:"
    assert source.count(known) == 1
    exec(compile(source.replace(known, floats + known), module.__file__, "exec"), module.__dict__)
    return torch.load(path, weights_only=True)


def read(path):
    """Prints the state as read by plain torch.load and by weights_only."""
    full, weights = torch.load(path), load_weights_only(path)
    assert isinstance(full, collections.OrderedDict)
    print(json.dumps([plain(full), plain(weights)]))


def write(directory):
    """A state of each optimizer after three steps, and the model one step later."""
    for name in optimizers(network()):
        torch.manual_seed(4)
        model = network()
        optimizer = optimizers(model)[name]
        for _ in range(3):
            step(model, optimizer)
        scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 5])
        state = {
            "models_state_dict": [collections.OrderedDict(("module." + k, v) for k, v in model.state_dict().items())],
            "optimizers_state_dict": [optimizer.state_dict()],
            "lr_schedulers_state_dict": [],
            "unused_schedulers": [scheduler.state_dict()],
            "callbacks": {},
            "rng_state": {"cpu_rng_state": torch.random.get_rng_state(), "np_rng_state": numpy.random.get_state(),
                          "random_rng_state": random.getstate()},
        }
        torch.save(state, os.path.join(directory, name + ".pth"))
        step(model, optimizer)
        torch.save(model.state_dict(), os.path.join(directory, name + ".next.pth"))


def go_on(path, out, name):
    """Loads a det state into Python's model and optimizer, takes a step, and writes the model."""
    state = load_weights_only(path)
    model = network()
    model.load_state_dict(state["models_state_dict"][0])
    optimizer = optimizers(model)[name]
    optimizer.load_state_dict(state["optimizers_state_dict"][0])
    for group in optimizer.param_groups:
        group["foreach"] = name == "nadam"
    step(model, optimizer)
    torch.save(model.state_dict(), out)


class Malicious:
    def __init__(self, witness):
        self.witness = witness

    def __reduce__(self):
        return os.system, ("touch " + self.witness,)


def main():
    command, arguments = sys.argv[1], sys.argv[2:]
    if command == "read":
        read(*arguments)
    elif command == "write":
        write(*arguments)
    elif command == "continue":
        go_on(*arguments)
    elif command == "malicious":
        torch.save({"models_state_dict": [{"weight": Malicious(arguments[1])}]}, arguments[0])
    elif command == "foreign":
        torch.save({"lr": numpy.float64(0.5), "size": torch.Size([2, 3]), "type": torch.bfloat16,
                    "parameter": torch.nn.Parameter(torch.ones(2)), "device": torch.device("cpu"),
                    "half": torch.ones(3, dtype=torch.bfloat16), "flags": torch.tensor([True, False])}, arguments[0])
    else:
        sys.exit("unknown command " + command)


if __name__ == "__main__":
    main()
