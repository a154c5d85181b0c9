#!/usr/bin/env python3
"""The compiled functions of examples/compiled_step beside the same functions in eager mode, in turn, on one thread:
the ratio of the median times of a training step (gradients and update) and of a validation batch. Needs PyTorch 2.6
or later; without it no figure is printed.
tests/bench/compiled.py [ROUNDS]"""
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples" / "compiled_step"))

CALLS = 30
WARM_UP = 3


def seconds_of(body):
    begin = time.perf_counter()
    body()
    return time.perf_counter() - begin


def figure(name, eager, compiled, bound):
    value = statistics.median(compiled) / statistics.median(eager)
    print(f"{name} {value:.3f} ratio <={bound} {'ok' if value <= bound else 'short'}", flush=True)


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    try:
        import torch
        release = tuple(int(part) for part in torch.__version__.split(".")[:2])
    except ImportError:
        release = (0, 0)
    if release < (2, 6):
        print("compiled: no figure without PyTorch 2.6 or later", file=sys.stderr)
        return
    from torch._inductor.package import load_package
    import export_step
    import model
    step = export_step.Step(model, "cpu")
    functions = step.functions()
    with tempfile.TemporaryDirectory() as folder:
        package = pathlib.Path(folder) / "step.pt2"
        export_step.write_package(step, {name: export_step.compile_function(*one) for name, one in functions.items()},
                                  package)
        torch.set_num_threads(1)
        compiled = {name: load_package(str(package), name) for name in functions}
        eager = {name: function for name, (function, _) in functions.items()}

        def step_with(calls):
            for name in ("gradients", "update"):
                calls[name](*functions[name][1])

        def validation_with(calls):
            with torch.no_grad():
                calls["evaluate"](*functions["evaluate"][1])

        for name, body, bound in (("compiled_step_over_eager", step_with, 1.02),
                                  ("compiled_validation_over_eager", validation_with, 1.02)):
            for calls in [eager, compiled] * WARM_UP:
                body(calls)
            took = {"eager": [], "compiled": []}
            for _ in range(rounds):
                for kind, calls in (("eager", eager), ("compiled", compiled)):
                    took[kind] += [seconds_of(lambda: body(calls)) for _ in range(CALLS)]
            figure(name, took["eager"], took["compiled"], bound)


if __name__ == "__main__":
    main()
