"""Exports right and wrong packages of small_step, and trains it in eager mode.

Usage: packages.py PATH-OF-EXPORTER DIRECTORY. Prints the validation losses of the eager training as JSON.
"""
import json
import os
import pathlib
import sys

import torch

sys.path[:0] = [sys.argv[1], os.path.dirname(os.path.abspath(__file__))]
import export_step  # noqa: E402
import small_step  # noqa: E402

STEPS = 30


def constant(step, function):
    """The function with the hyperparameters of the export instead of its last inputs."""
    values = list(step.hyperparameters.values())
    return lambda *inputs: function(*inputs[:-len(values)], *(torch.full_like(value, 0.05) for value in values))


def merged(step, inputs):
    """Inputs in which two names of the state are one tensor."""
    names = list(step.state)
    inputs = list(inputs)
    for name in small_step.SHAPES:
        inputs[names.index("square." + name)] = inputs[names.index("mean." + name)]
    return inputs


def eager(batch):
    state = small_step.initial_state()
    values = {"learning_rate": torch.tensor(0.02), "epsilon": torch.tensor(1e-8)}
    for _ in range(STEPS):
        gradients, _ = small_step.gradients(state, batch)
        state = small_step.update(state, gradients, values)
    return small_step.evaluate(state, small_step.records(20, 100))["loss"].item()


def main():
    directory = pathlib.Path(sys.argv[2])
    step = export_step.Step(small_step, "cpu")
    functions = step.functions()
    files = {name: export_step.compile_function(*function) for name, function in functions.items()}
    export_step.write_package(step, files, directory / "step.pt2")
    update, inputs = functions["update"]
    for name, wrong in (("merged", (update, merged(step, inputs))), ("constant", (constant(step, update), inputs))):
        export_step.write_package(step, {**files, "update": export_step.compile_function(*wrong)},
                                  directory / f"{name}.pt2")
    # The records of one batch on one process and on two: their order within a batch does not matter.
    for name, count, seed in (("many", 40, 7), ("one", 8, 8), ("two", 16, 9), ("test", 20, 100)):
        export_step.write_safetensors(directory / f"{name}.safetensors", small_step.records(count, seed))
    print(json.dumps({"one": eager(small_step.records(8, 8)), "two": eager(small_step.records(16, 9))}))


if __name__ == "__main__":
    main()
