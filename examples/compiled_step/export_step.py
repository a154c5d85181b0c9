"""Exports a training step for `entrypoint: step.pt2`. Needs PyTorch 2.6 or later and a C++ compiler.

Usage: python3 -m export_step MODULE [--output step.pt2] [--device cpu]

MODULE is a Python module with these functions; tensors are in dicts by name:

  initial_state()          the state of a new trial: parameters, optimizer state, step counters
  example_batch(seed)      a batch; its first sizes are the number of records. Other seeds give other values
  HYPERPARAMETERS          example values by name; each becomes an input, so that searches can vary it
  gradients(state, batch)  returns (gradients, metrics); metrics contain "loss". Gradients are averaged over
                           processes before the update
  update(state, gradients, hyperparameters)  returns the new state, with all names of the state
  evaluate(state, batch)   returns the metrics of a validation batch
  evaluation_batch(seed)   optional: a batch of validation; example_batch by default

The functions must not change their arguments and must not draw random numbers. Three files are written: the
compiled functions (step.pt2), their signature (step.json) and tensors (step.safetensors): the initial state, and
one step that was recorded in eager mode. det-harness repeats that step before it trains.
"""
import argparse
import functools
import hashlib
import importlib
import json
import pathlib
import shutil
import struct
import subprocess
import sys

import torch
from torch._inductor import config as inductor, cpu_vec_isa
from torch._inductor.package import package_aoti
from torch.fx.experimental.proxy_tensor import make_fx

FORMAT = 1
DTYPES = {
    torch.float32: ("float32", "F32"), torch.float64: ("float64", "F64"), torch.float16: ("float16", "F16"),
    torch.bfloat16: ("bfloat16", "BF16"), torch.int64: ("int64", "I64"), torch.int32: ("int32", "I32"),
    torch.uint8: ("uint8", "U8"), torch.bool: ("bool", "BOOL"),
}
WARM_UP_STEPS = 2  # before the recorded step: optimizer state that starts as zeros gets values


def separate(tensors, device="cpu"):
    """Copies every tensor. Two names of one tensor would become one input, and the step would be wrong."""
    return {name: tensor.detach().to(device).clone(memory_format=torch.contiguous_format)
            for name, tensor in tensors.items()}


def spec_of(tensors):
    return {name: {"dtype": DTYPES[tensor.dtype][0], "shape": list(tensor.shape)} for name, tensor in tensors.items()}


def write_safetensors(path, tensors):
    header, parts, at = {}, [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: -item[1].element_size()):
        data = tensor.detach().cpu().contiguous()
        raw = data.reshape(-1).view(torch.uint8).numpy().tobytes() if data.numel() else b""
        header[name] = {"dtype": DTYPES[tensor.dtype][1], "shape": list(tensor.shape),
                        "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for raw in parts:
            out.write(raw)


class Step:
    """The functions of a module, with lists of tensors as arguments and results."""

    def __init__(self, module, device):
        self.module, self.device = module, device
        self.state = separate(module.initial_state(), device)
        self.batch = self.example(0)
        self.evaluation_batch = self.example(0, evaluation=True)
        self.hyperparameters = self.inputs(1)
        gradients, metrics = module.gradients(self.state, self.batch)
        self.gradients = separate(gradients, device)
        self.metrics = list(metrics)
        self.evaluation_metrics = list(module.evaluate(self.state, self.evaluation_batch))
        self.check()

    def example(self, seed, evaluation=False):
        make = getattr(self.module, "evaluation_batch", None) if evaluation else None
        return separate((make or self.module.example_batch)(seed), self.device)

    def inputs(self, factor):
        return {name: torch.tensor(float(value) * factor, device=self.device)
                for name, value in self.module.HYPERPARAMETERS.items()}

    def check(self):
        """Exits with all problems of the functions."""
        problems = []
        if "loss" not in self.metrics:
            problems.append("gradients() returns no metric \"loss\"")
        after = self.module.update(self.state, self.gradients, self.hyperparameters)
        for name in sorted(set(after) ^ set(self.state)):
            problems.append(f"{name} is not both in initial_state() and in the result of update()")
        for name in set(after) & set(self.state):
            old, new = self.state[name], after[name]
            if (old.dtype, old.shape) != (new.dtype, new.shape):
                problems.append(f"update() changes {name} from {old.dtype} {list(old.shape)} to "
                                f"{new.dtype} {list(new.shape)}")
        for kind, tensors in (("state", self.state), ("batch", self.batch), ("gradients", self.gradients)):
            for name, tensor in tensors.items():
                if tensor.dtype not in DTYPES:
                    problems.append(f"{kind} {name}: {tensor.dtype} is not supported")
        if problems:
            sys.exit("\n".join(problems))

    # The functions as they are compiled. Metrics are float32 without dimensions.

    def run_gradients(self, *inputs):
        state, batch = self.named(inputs, self.state, self.batch)
        gradients, metrics = self.module.gradients(state, batch)
        return tuple(gradients[name].contiguous() for name in self.gradients) + self.numbers(metrics, self.metrics)

    def run_update(self, *inputs):
        state, gradients, values = self.named(inputs, self.state, self.gradients, self.hyperparameters)
        after = self.module.update(state, gradients, values)
        return tuple(after[name].detach().contiguous() for name in self.state)

    def run_evaluate(self, *inputs):
        state, batch = self.named(inputs, self.state, self.evaluation_batch)
        return self.numbers(self.module.evaluate(state, batch), self.evaluation_metrics)

    @staticmethod
    def named(inputs, *groups):
        inputs = iter(inputs)
        return [{name: next(inputs) for name in group} for group in groups]

    @staticmethod
    def numbers(metrics, names):
        return tuple(metrics[name].detach().to(torch.float32).reshape(()) for name in names)

    def functions(self):
        """Name -> (function, example inputs)."""
        def values(*groups):
            return [tensor for group in groups for tensor in group.values()]

        return {"gradients": (self.run_gradients, values(self.state, self.batch)),
                "update": (self.run_update, values(self.state, self.gradients, self.hyperparameters)),
                "evaluate": (self.run_evaluate, values(self.state, self.evaluation_batch))}

    def record(self):
        """Runs a step in eager mode, with another batch and other hyperparameters than the compiler sees."""
        values, state = self.inputs(0.5), self.state
        for seed in range(1, WARM_UP_STEPS + 2):
            before, batch = state, self.example(seed)
            results = self.run_gradients(*before.values(), *batch.values())
            gradients, metrics = results[:len(self.gradients)], results[len(self.gradients):]
            state = dict(zip(self.state, self.run_update(*before.values(), *gradients, *values.values())))
        evaluation_batch = self.example(1, evaluation=True)
        evaluation_metrics = self.run_evaluate(*state.values(), *evaluation_batch.values())
        return {"initial": self.state, "before": before, "after": state, "batch": batch, "hyperparameters": values,
                "metrics": dict(zip(self.metrics, metrics)), "evaluation.batch": evaluation_batch,
                "evaluation.metrics": dict(zip(self.evaluation_metrics, evaluation_metrics))}

    def manifest(self, package):
        return {"format": FORMAT, "torch": torch.__version__,
                "package_sha256": hashlib.sha256(package.read_bytes()).hexdigest(),
                "device": torch.device(self.device).type,
                "state": spec_of(self.state), "gradients": spec_of(self.gradients), "batch": spec_of(self.batch),
                "hyperparameters": list(self.hyperparameters), "metrics": self.metrics,
                "evaluation": {"batch": spec_of(self.evaluation_batch), "metrics": self.evaluation_metrics}}


def max_pool_backward(gradient, images, kernel, stride, padding, dilation, ceil_mode, indices):
    """The gradient of max_pool2d for windows side by side: it belongs to the first maximum of each window. The
    compiler's own one looks for each element through all windows, and makes the forward pass compute `indices`."""
    size, height, width = kernel[0], images.shape[-2], images.shape[-1]
    rows, columns = gradient.shape[-2:]
    if list(kernel) != [size, size] or list(stride or kernel) != list(kernel) or any(padding) or ceil_mode or \
            any(one != 1 for one in dilation):
        return NotImplemented
    places = [images[..., row:rows * size:size, column:columns * size:size]
              for row in range(size) for column in range(size)]
    largest, free, parts = functools.reduce(torch.maximum, places), torch.ones_like(gradient, dtype=torch.bool), []
    for place in places:
        hit = (place == largest) & free
        free = free & ~hit
        parts.append(torch.where(hit, gradient, 0))
    # Rows first, then the image: each part is written to its place, and nothing is copied afterwards.
    lines = [torch.stack(parts[row * size:(row + 1) * size], -1).flatten(-2) for row in range(size)]
    whole = torch.stack(lines, -2).flatten(-3, -2)
    return torch.nn.functional.pad(whole, (0, width - columns * size, 0, height - rows * size))


FASTER = {torch.ops.aten.max_pool2d_with_indices_backward.default: max_pool_backward}


@functools.cache
def use_vector_instructions():
    """Makes the compiler use AVX2 or the vector instructions of another processor: code without them is several times
    slower. Debian's PyTorch fails its own check for them, which loads a library without those that it needs."""
    inductor.cpp.simdlen = 256  # AVX2, which more machines have than AVX-512
    if cpu_vec_isa.pick_vec_isa():
        return
    if not shutil.which("c++"):
        sys.exit("c++ is missing: the export needs a C++ compiler (Debian's package g++)")
    headers = subprocess.run(["c++", "-fsyntax-only", "-include", "sleef.h", "-x", "c++", "/dev/null"],
                             capture_output=True, check=False)
    if headers.returncode == 0:
        inductor.cpp.vec_isa_ok = True
        cpu_vec_isa.valid_vec_isa_list.cache_clear()
    else:
        print("The step is compiled without vector instructions, and is slower: sleef.h is missing (Debian's package "
              "libsleef-dev).", file=sys.stderr)


def compile_function(function, inputs):
    """Traces forward and backward pass as plain operations and compiles them. Returns the files of the result."""
    # Code that was compiled for one thread computes wrong sums with several.
    torch.set_num_threads(max(2, torch.get_num_threads()))
    on_cpu = all(tensor.device.type == "cpu" for tensor in inputs)
    if on_cpu:
        use_vector_instructions()
    graph = make_fx(function, decomposition_table=FASTER if on_cpu else None)(*inputs)

    class Traced(torch.nn.Module):
        def forward(self, *tensors):
            return graph(*tensors)

    program = torch.export.export(Traced(), tuple(inputs), strict=False)
    # Without dynamic_threads the code would always use as many threads as this process has.
    return torch._inductor.aot_compile(program.module(), tuple(inputs), options={
        "aot_inductor.package": True, "cpp.dynamic_threads": True})


def write_package(step, files, output):
    """Writes the three files. `files`: name of a function -> result of compile_function()."""
    output = pathlib.Path(output)
    package_aoti(str(output), files)
    write_safetensors(output.with_suffix(".safetensors"),
                      {f"{group}/{name}": tensor for group, tensors in step.record().items()
                       for name, tensor in tensors.items()})
    output.with_suffix(".json").write_text(json.dumps(step.manifest(output), indent=1) + "\n")


def export(module, output, device="cpu"):
    """Exports the step of a module."""
    step = Step(module, device)
    write_package(step, {name: compile_function(*function) for name, function in step.functions().items()}, output)


def main():
    parser = argparse.ArgumentParser(usage="python3 -m export_step MODULE [--output step.pt2] [--device cpu]")
    parser.add_argument("module")
    parser.add_argument("--output", default="step.pt2")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    if not options.output.endswith(".pt2"):
        parser.error("--output must end in .pt2")
    export(importlib.import_module(options.module), options.output, options.device)
    print(f"{options.output} is exported; train it with `entrypoint: {options.output}`")


if __name__ == "__main__":
    main()
