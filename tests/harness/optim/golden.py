"""Prints the values that PyTorch gives for learning-rate schedules and optimizers, as one JSON object.

golden.py schedules: reads {"states": {name: {"state": ..., "groups": [{"lr", "momentum"}]}}}, the states of
another implementation after 20 steps. Prints:
  values     61 rows of the learning rates and momentums of two groups, row 0 before the first step
  hand       the same with learning rates halved by hand after step 30
  states     the states after 20 steps
  continued  rows 21 to 60, continued from the states read
golden.py optimizers: prints the parameters after 10 steps on the problem of `gradient`; beside them those of
optimizers with other problems or none in PyTorch.
"""
import json
import math
import sys
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler as lr

warnings.simplefilter("ignore")
STEPS, SAVED_AT, HAND_AT = 60, 20, 30


def metric(step):
    """A metric that falls, stays constant, then falls again."""
    return max(1.0 / (1 + step), 0.2) if step < 40 else 0.1 + 0.05 * math.sin(step)


SCHEDULES = {
    "StepLR": lambda o: lr.StepLR(o, step_size=7, gamma=0.5),
    "MultiStepLR": lambda o: lr.MultiStepLR(o, milestones=[5, 17, 17, 40], gamma=0.3),
    "ConstantLR": lambda o: lr.ConstantLR(o, factor=0.25, total_iters=9),
    "LinearLR": lambda o: lr.LinearLR(o, start_factor=0.1, end_factor=0.9, total_iters=33),
    "ExponentialLR": lambda o: lr.ExponentialLR(o, gamma=0.93),
    "PolynomialLR": lambda o: lr.PolynomialLR(o, total_iters=45, power=1.7),
    "CosineAnnealingLR": lambda o: lr.CosineAnnealingLR(o, T_max=13, eta_min=0.001),
    "CosineAnnealingWarmRestarts": lambda o: lr.CosineAnnealingWarmRestarts(o, T_0=7, T_mult=2, eta_min=0.002),
    "LambdaLR": lambda o: lr.LambdaLR(o, [lambda step: 0.95 ** step, lambda step: 1 / (1 + step)]),
    "MultiplicativeLR": lambda o: lr.MultiplicativeLR(o, lambda step: 1 - 0.5 / (step + 1)),
    "OneCycleLR": lambda o: lr.OneCycleLR(o, max_lr=[0.5, 0.3], total_steps=60),
    "OneCycleLR linear": lambda o: lr.OneCycleLR(
        o, max_lr=0.4, epochs=6, steps_per_epoch=10, pct_start=0.25, anneal_strategy="linear", three_phase=True,
        base_momentum=0.8, max_momentum=0.9, div_factor=10.0, final_div_factor=100.0),
    "OneCycleLR Adam": lambda o: lr.OneCycleLR(o, max_lr=0.5, total_steps=70, three_phase=True, pct_start=0.4),
    "CyclicLR": lambda o: lr.CyclicLR(o, base_lr=0.01, max_lr=[0.2, 0.1], step_size_up=6, step_size_down=10),
    "CyclicLR triangular2": lambda o: lr.CyclicLR(
        o, base_lr=0.01, max_lr=0.3, step_size_up=8, mode="triangular2", cycle_momentum=False),
    "CyclicLR exp_range": lambda o: lr.CyclicLR(
        o, base_lr=0.02, max_lr=0.3, step_size_up=5, mode="exp_range", gamma=0.98),
    "SequentialLR": lambda o: lr.SequentialLR(
        o, [lr.LinearLR(o, start_factor=0.05, total_iters=10), lr.CosineAnnealingLR(o, T_max=25, eta_min=1e-4),
            lr.ExponentialLR(o, gamma=0.9)], milestones=[10, 40]),
    "SequentialLR restarts": lambda o: lr.SequentialLR(
        o, [lr.ConstantLR(o, factor=0.5, total_iters=30), lr.CosineAnnealingWarmRestarts(o, T_0=9),
            lr.StepLR(o, step_size=4, gamma=0.7)], milestones=[15, 35]),
    "SequentialLR begins with restarts": lambda o: lr.SequentialLR(
        o, [lr.CosineAnnealingWarmRestarts(o, T_0=4, eta_min=0.002), lr.StepLR(o, step_size=4, gamma=0.7)],
        milestones=[25]),
    "ChainedScheduler": lambda o: lr.ChainedScheduler(
        [lr.ConstantLR(o, factor=0.1, total_iters=12), lr.ExponentialLR(o, gamma=0.95)]),
    "ReduceLROnPlateau": lambda o: lr.ReduceLROnPlateau(o, factor=0.3, patience=3, cooldown=2, min_lr=[0.001, 0.002]),
    "ReduceLROnPlateau max": lambda o: lr.ReduceLROnPlateau(
        o, mode="max", patience=1, threshold=0.01, threshold_mode="abs"),
}


def parameter(shift, count):
    values = [math.sin(shift + i) for i in range(count)]
    return torch.tensor(values, dtype=torch.float32).requires_grad_()


def make_optimizer(name):
    groups = [{"params": [parameter(0, 2)], "lr": 0.1}, {"params": [parameter(9, 2)], "lr": 0.02}]
    return torch.optim.Adam(groups) if "Adam" in name else torch.optim.SGD(groups, lr=1, momentum=0.9)


def momentum_key(group):
    return "betas" if "betas" in group else "momentum"


def row(optimizer):
    groups = optimizer.param_groups
    return [g["lr"] for g in groups] + [g["betas"][0] if "betas" in g else g["momentum"] for g in groups]


def advance(schedule, step):
    if isinstance(schedule, lr.ReduceLROnPlateau):
        schedule.step(metric(step))
    else:
        schedule.step()


def plain(value):
    """The data of a state, with infinities as text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items() if k != "lr_lambdas" and is_data(v)}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def is_data(value):
    return value is None or isinstance(value, (int, float, str, bool, list, tuple, dict))


def python_state(state):
    """Restores a state from JSON, where infinities and integer keys were text."""
    changed = {}
    for key, value in state.items():
        if key == "milestones":
            value = {int(k): v for k, v in value.items()}
        elif key == "_schedulers":
            value = [python_state(s) for s in value]
        elif value in ("Infinity", "-Infinity"):
            value = float(value)
        changed[key] = value
    return changed


def run(name, hand):
    optimizer = make_optimizer(name)
    schedule = SCHEDULES[name](optimizer)
    rows, state = [row(optimizer)], None
    for step in range(1, STEPS + 1):
        advance(schedule, step)
        rows.append(row(optimizer))
        if step == SAVED_AT:
            groups = [{"lr": g["lr"], "momentum": m} for g, m in zip(optimizer.param_groups, row(optimizer)[2:])]
            state = {"state": plain(schedule.state_dict()), "groups": groups}
        if hand and step == HAND_AT:
            for group in optimizer.param_groups:
                group["lr"] *= 0.5
    return rows, state


def go_on(name, saved):
    optimizer = make_optimizer(name)
    schedule = SCHEDULES[name](optimizer)
    state = python_state(saved["state"])
    if name == "LambdaLR" or name == "MultiplicativeLR":
        state["lr_lambdas"] = [None, None]
    schedule.load_state_dict(state)
    for group, values in zip(optimizer.param_groups, saved["groups"]):
        group["lr"] = values["lr"]
        group[momentum_key(group)] = (values["momentum"], 0.999) if "betas" in group else values["momentum"]
    rows = []
    for step in range(SAVED_AT + 1, STEPS + 1):
        advance(schedule, step)
        rows.append(row(optimizer))
    return rows


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=0.01),
    "SGD dampening": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, dampening=0.3),
    "SGD nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.02),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.02),
    "Adam amsgrad": lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.8, 0.95), weight_decay=0.05, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
    "AdamW amsgrad": lambda p: torch.optim.AdamW(p, lr=0.02, eps=1e-4, amsgrad=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, lr=0.01, weight_decay=0.01),
    "RMSprop centered": lambda p: torch.optim.RMSprop(p, lr=0.01, momentum=0.9, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1, lr_decay=0.05, weight_decay=0.01),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.02),
    "Adamax decay": lambda p: torch.optim.Adamax(p, lr=0.02, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.05),
    # Without foreach, PyTorch 1.13 multiplies by the momentum twice; 2.0 does not.
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.02, foreach=True),
    "NAdam decay": lambda p: torch.optim.NAdam(p, lr=0.02, weight_decay=0.05, momentum_decay=0.02, foreach=True),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.02),
    "RAdam decay": lambda p: torch.optim.RAdam(p, lr=0.02, betas=(0.8, 0.95), weight_decay=0.05),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.05),
    "ASGD averaged": lambda p: torch.optim.ASGD(p, lr=0.05, lambd=0.01, alpha=0.6, t0=3, weight_decay=0.02),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.01),
    "Rprop bounds": lambda p: torch.optim.Rprop(p, lr=0.02, etas=(0.4, 1.5), step_sizes=(0.005, 0.04)),
    "Adadelta decay": lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.8, eps=1e-5, weight_decay=0.1),
}


def gradient(p, step):
    values = [(w - 0.5) * (1 + 0.1 * i) + 0.05 * math.cos(step + i) for i, w in enumerate(p.detach().tolist())]
    return torch.tensor(values, dtype=torch.float32)


def optimized(name):
    parameters = [parameter(0, 23), parameter(5, 4)]
    optimizer = OPTIMIZERS[name](parameters)
    for step in range(10):
        for p in parameters:
            p.grad = gradient(p, step)
        optimizer.step()
    return [value for p in parameters for value in p.detach().tolist()]


def rms(x):
    return np.sqrt(np.mean(x * x))


def adafactor(w, g, state, step, lr=0.01, beta2_decay=-0.8, eps=(float(np.finfo(np.float32).eps), 1e-3), d=1.0,
              weight_decay=0.0):
    """Shazeer and Stern 2018, algorithms 4 (matrices) and 5 (the whole), with parameter scaling and weight decay."""
    beta2 = 1 - step ** beta2_decay
    rate = max(eps[1], rms(w)) * min(lr, 1 / math.sqrt(step))
    w = w * (1 - lr * weight_decay)
    if w.ndim == 1:
        state["v"] = v = beta2 * state.get("v", 0) + (1 - beta2) * g ** 2
    else:
        state["r"] = r = beta2 * state.get("r", 0) + (1 - beta2) * (g ** 2).mean(-1)
        state["c"] = c = beta2 * state.get("c", 0) + (1 - beta2) * (g ** 2).mean(-2)
        v = r[..., :, None] * c[..., None, :] / np.maximum(r.mean(-1), eps[0])[..., None, None]
    u = g / np.sqrt(np.maximum(v, eps[0] ** 2))
    return w - rate * u / max(1.0, rms(u) / d)


def muon(w, g, state, step, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, adjust="original"):
    """Jordan et al. 2024; Liu et al. 2025, section 2.2."""
    state["m"] = m = momentum * state.get("m", 0) + (1 - momentum) * g
    x = (1 - momentum) * g + momentum * m if nesterov else m
    x = x / np.linalg.norm(x)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    rows, columns = w.shape
    scale = math.sqrt(max(1, rows / columns)) if adjust == "original" else 0.2 * math.sqrt(max(rows, columns))
    return w * (1 - lr * weight_decay) - lr * scale * x


# Optimizers that PyTorch 1.13 does not have, transcribed from their papers in double precision.
TRANSCRIBED = {
    "Adafactor": (adafactor, {}),
    "Adafactor decay": (adafactor, {"lr": 0.05, "beta2_decay": -0.6, "d": 1.5, "weight_decay": 0.1}),
    "Muon": (muon, {"lr": 0.02}),
    "Muon scaled": (muon, {"lr": 0.05, "nesterov": False, "momentum": 0.8, "adjust": "match_rms_adamw",
                           "weight_decay": 0}),
}


def transcribed(name):
    """Parameters after ten steps: two matrices, and for Adafactor a vector."""
    step_of, options = TRANSCRIBED[name]
    shapes = [(6, 4), (3, 7)] + ([(5,)] if step_of is adafactor else [])
    out = []
    for shift, shape in enumerate(shapes):
        w = np.sin(shift + np.arange(np.prod(shape), dtype=np.float64)).reshape(shape)
        state = {}
        for step in range(10):
            factor = 1 + 0.1 * np.arange(w.size).reshape(shape)
            g = (w - 0.5) * factor + 0.05 * np.cos(step + np.arange(w.size)).reshape(shape)
            w = step_of(w, g, state, step + 1, **options)
        out += w.flatten().tolist()
    return out


def sparse_adam():
    """An embedding of which two rows have a gradient in each step."""
    table = torch.nn.Embedding(5, 3, sparse=True)
    with torch.no_grad():
        table.weight.copy_(torch.arange(15.0).sin().reshape(5, 3))
    optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.05, betas=(0.8, 0.95))
    for step in range(10):
        optimizer.zero_grad()
        table(torch.tensor([step % 5, (2 * step + 1) % 5, step % 5])).square().sum().backward()
        optimizer.step()
    return table.weight.flatten().tolist()


def lbfgs(**options):
    """A sum of squares with a quartic term, two steps of up to six iterations."""
    p = parameter(0, 7)
    optimizer = torch.optim.LBFGS([p], max_iter=6, history_size=4, **options)

    def closure():
        optimizer.zero_grad()
        loss = ((p - 0.5) ** 2 * torch.arange(1.0, 8.0)).sum() + p.pow(4).sum()
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(closure)
    return p.detach().tolist()


def profiler_actions(steps, **options):
    """The action of each step as a letter: nothing, warm-up, active, last active."""
    letters = {"NONE": "-", "WARMUP": "w", "RECORD": "a", "RECORD_AND_SAVE": "l"}
    decide = torch.profiler.schedule(**options)
    return "".join(letters[decide(step).name] for step in range(steps))


def main():
    if sys.argv[1] == "optimizers":
        print(json.dumps({
            "dense": {name: optimized(name) for name in OPTIMIZERS},
            "transcribed": {name: transcribed(name) for name in TRANSCRIBED},
            "SparseAdam": sparse_adam(),
            "LBFGS": lbfgs(lr=0.1),
            "LBFGS search": lbfgs(line_search_fn="strong_wolfe"),
        }))
        return
    if sys.argv[1] == "profiler":
        print(json.dumps([profiler_actions(**one) for one in json.load(sys.stdin)]))
        return
    read = json.load(sys.stdin)["states"]
    out = {"values": {}, "hand": {}, "states": {}, "continued": {}}
    for name in SCHEDULES:
        out["values"][name], out["states"][name] = run(name, hand=False)
        out["hand"][name], _ = run(name, hand=True)
        if name in read:
            out["continued"][name] = go_on(name, read[name])
    print(json.dumps(out))


main()
