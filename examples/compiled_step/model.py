"""A convolutional network for MNIST and AdamW, as functions of tensors, for export_step."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

BATCH_SIZE, EVALUATION_BATCH_SIZE = 64, 200
HYPERPARAMETERS = {"learning_rate": 1e-3, "weight_decay": 0.01}
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.hidden = nn.Linear(1600, 128)
        self.output = nn.Linear(128, 10)

    def forward(self, images):
        pixels = images.unsqueeze(1).to(torch.float32) / 255
        features = F.max_pool2d(F.relu(self.conv1(pixels)), 2)
        features = F.max_pool2d(F.relu(self.conv2(features)), 2)
        return self.output(F.relu(self.hidden(features.flatten(1))))


torch.manual_seed(0)
net = Net()
NAMES = [name for name, _ in net.named_parameters()]


def initial_state():
    # Powers of the decay rates: a power inside of update() would be computed again for each element.
    state = {"power1": torch.ones(()), "power2": torch.ones(())}
    for name, parameter in net.named_parameters():
        state["model." + name] = parameter
        state["mean." + name] = torch.zeros_like(parameter)
        state["square." + name] = torch.zeros_like(parameter)
    return state


def example_batch(seed, size=BATCH_SIZE):
    generator = torch.Generator().manual_seed(seed)
    return {"images": torch.randint(0, 256, (size, 28, 28), generator=generator, dtype=torch.uint8),
            "labels": torch.randint(0, 10, (size,), generator=generator)}


def evaluation_batch(seed):
    return example_batch(seed, EVALUATION_BATCH_SIZE)


def metrics_of(weights, batch):
    scores = functional_call(net, weights, (batch["images"],))
    hits = scores.argmax(1) == batch["labels"]
    return {"loss": F.cross_entropy(scores, batch["labels"]), "accuracy": hits.to(torch.float32).mean()}


def gradients(state, batch):
    weights = {name: state["model." + name].detach().requires_grad_() for name in NAMES}
    metrics = metrics_of(weights, batch)
    return dict(zip(NAMES, torch.autograd.grad(metrics["loss"], list(weights.values())))), metrics


def update(state, gradients, hyperparameters):
    rate, decay = hyperparameters["learning_rate"], hyperparameters["weight_decay"]
    power1, power2 = BETA1 * state["power1"], BETA2 * state["power2"]
    after = {"power1": power1, "power2": power2}
    for name in NAMES:
        weight, gradient = state["model." + name], gradients[name]
        mean = BETA1 * state["mean." + name] + (1 - BETA1) * gradient
        square = BETA2 * state["square." + name] + (1 - BETA2) * gradient * gradient
        scale = (square / (1 - power2)).sqrt() + EPSILON
        after["model." + name] = weight * (1 - rate * decay) - rate * mean / (1 - power1) / scale
        after["mean." + name] = mean
        after["square." + name] = square
    return after


def evaluate(state, batch):
    return metrics_of({name: state["model." + name] for name in NAMES}, batch)
