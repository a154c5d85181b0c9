"""A small network with Adam, for the tests of compiled steps."""
import torch
import torch.nn.functional as F

BATCH_SIZE, EVALUATION_BATCH_SIZE = 8, 10
HYPERPARAMETERS = {"learning_rate": 0.05, "epsilon": 1e-8}
SHAPES = {"hidden.weight": (16, 6), "hidden.bias": (16,), "output.weight": (3, 16), "output.bias": (3,)}


def initial_state():
    generator = torch.Generator().manual_seed(3)
    state = {"step": torch.zeros((), dtype=torch.int64)}
    for name, shape in SHAPES.items():
        state["model." + name] = 0.3 * torch.randn(shape, generator=generator)
    for name, shape in SHAPES.items():
        zeros = torch.zeros(shape)
        # One tensor for two names: the exporter separates them.
        state["mean." + name] = state["square." + name] = zeros
    return state


def records(count, seed):
    generator = torch.Generator().manual_seed(seed)
    data = torch.randn((count, 6), generator=generator)
    return {"data": data, "target": (data[:, 0] > 0).to(torch.int64) + (data[:, 1] > 0.5).to(torch.int64)}


def example_batch(seed):
    return records(BATCH_SIZE, seed)


def evaluation_batch(seed):
    return records(EVALUATION_BATCH_SIZE, seed)


def loss_of(weights, batch):
    hidden = torch.tanh(F.linear(batch["data"], weights["hidden.weight"], weights["hidden.bias"]))
    return F.cross_entropy(F.linear(hidden, weights["output.weight"], weights["output.bias"]), batch["target"])


def gradients(state, batch):
    weights = {name: state["model." + name].detach().requires_grad_() for name in SHAPES}
    loss = loss_of(weights, batch)
    return dict(zip(SHAPES, torch.autograd.grad(loss, list(weights.values())))), {"loss": loss}


def update(state, gradients, hyperparameters):
    step = state["step"] + 1
    after = {"step": step}
    for name in SHAPES:
        after["mean." + name] = 0.9 * state["mean." + name] + 0.1 * gradients[name]
        after["square." + name] = 0.99 * state["square." + name] + 0.01 * gradients[name] ** 2
        scale = (after["square." + name] / (1 - 0.99 ** step)).sqrt() + hyperparameters["epsilon"]
        change = after["mean." + name] / (1 - 0.9 ** step) / scale
        after["model." + name] = state["model." + name] - hyperparameters["learning_rate"] * change
    return after


def evaluate(state, batch):
    return {"loss": loss_of({name: state["model." + name] for name in SHAPES}, batch)}
