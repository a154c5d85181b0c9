#!/usr/bin/env python3
"""Runs programs that train in segments, alternating, and prints the median of their ratios.

segments.py BUILD_DIR trainer|precision|ddp|exact     see run.sh
segments.py BUILD_DIR gpu|gpu_on_cpu                  see ../gpu/run.sh
"""
import os
import socket
import statistics
import subprocess
import sys

PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.abspath(__file__))


class Program:
    """Segment servers of one or several ranks. A turn is a line in and the seconds of one batch (of rank 0)
    out."""

    def __init__(self, command, threads=1, ranks=1, **environment):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), **environment)
        self.processes = []
        port = str(free_port())
        for rank in range(ranks):
            if ranks > 1:
                env.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks),
                           MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                   stderr=subprocess.DEVNULL, env=env, text=True))
        for process in self.processes:
            self.expect(process, "ready")

    def expect(self, process, word=None):
        for line in process.stdout:
            if line.strip() == word:
                return None
            try:
                if word is None:
                    return float(line)
            except ValueError:
                pass
        sys.exit(f"{process.args} ended")

    def turn(self):
        for process in self.processes:
            process.stdin.write("\n")
            process.stdin.flush()
        return max(self.expect(process) for process in self.processes)

    def close(self):
        for process in self.processes:
            process.stdin.close()
        for process in self.processes:
            process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def medians(programs, rounds):
    """Returns the programs' medians and the medians of the per-round ratios to the first program."""
    names = list(programs)
    times = {name: [] for name in names}
    for number in range(rounds):
        for name in names if number % 2 == 0 else reversed(names):
            times[name].append(programs[name].turn())
    for program in programs.values():
        program.close()
    for name in names:
        print(f"{name}: {statistics.median(times[name]) * 1e3:.4g} ms a batch", file=sys.stderr)
    first = times[names[0]]
    return {name: statistics.median(t / f for t, f in zip(times[name], first)) for name in names}


def figure(name, value, bound):
    print(f"{name} {value:.4g} ratio <={bound:g} {'ok' if value <= bound else 'short'}", flush=True)


def trainer(program):
    for model, rounds, alone, faster, python in (("mlp", 15, 1.03, 0.90, 0.60), ("cnn", 11, 1.01, 0.95, 1.00)):
        ratios = medians({"bare": Program([program, "bare", model]), "trainer": Program([program, "trainer", model]),
                          "python": Program([PYTHON, f"{HERE}/train_segments.py", model])}, rounds)
        figure(f"trainer_{model}_over_bare", ratios["trainer"], faster)
        figure(f"trainer_{model}_over_python", ratios["trainer"] / ratios["python"], python)
        # The same malloc settings for both, to compare the loops themselves.
        settings = {"MALLOC_TRIM_THRESHOLD_": "2147483647", "MALLOC_MMAP_THRESHOLD_": str(1 << 25), "MALLOC_TOP_PAD_": str(64 << 20)}
        ratios = medians({"bare, malloc tuned": Program([program, "bare", model], **settings),
                          "trainer": Program([program, "trainer", model])}, rounds)
        figure(f"trainer_{model}_over_bare_with_tuned_malloc", ratios["trainer"], alone)


def precision(program):
    ratios = medians({"fp32": Program([program, "trainer", "cnn"], threads=2),
                      "bf16": Program([program, "bf16", "cnn"], threads=2)}, 11)
    figure("bf16_over_fp32_cnn", ratios["bf16"], 0.45)


def ddp(program):
    for backend, bound in (("shm", 0.93), ("gloo", 0.88)):
        ratios = medians({"no exchange": Program([program, "alone", "cnn"], ranks=2),
                          backend: Program([program, backend, "cnn"], ranks=2),
                          f"{backend}, early": Program([program, f"early-{backend}", "cnn"], ranks=2),
                          f"{backend}, late": Program([program, f"late-{backend}", "cnn"], ranks=2)}, 11)
        efficiency = 1 / ratios[backend]
        print(f"ddp_efficiency_{backend} {efficiency:.4g} ratio >={bound:g} {'ok' if efficiency >= bound else 'short'}")
        print(f"{backend}: early/late {ratios[f'{backend}, early'] / ratios[f'{backend}, late']:.3f}", file=sys.stderr)
    all_reduce(program)


def exact(program):
    """Cost of bit-identical results on any number of processes: four shards a batch and a fixed summation
    tree."""
    for ranks, bound in ((1, 1.2), (2, 1.2)):
        ratios = medians({"fast": Program([program, "shm" if ranks > 1 else "trainer", "cnn"], ranks=ranks),
                          "exact": Program([program, "exact", "cnn"], ranks=ranks)}, 11)
        figure(f"exact_over_fast_{ranks}", ratios["exact"], bound)


def all_reduce(program):
    """Starts two ranks that print their figures themselves."""
    port = str(free_port())
    ranks = [subprocess.Popen([os.path.join(os.path.dirname(program), "bench_all_reduce")],
                              env=dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", LOCAL_WORLD_SIZE="2",
                                       MASTER_ADDR="127.0.0.1", MASTER_PORT=port)) for rank in range(2)]
    for rank in ranks:
        rank.wait()


def gpu(program, rounds=11):
    for model, faster in (("mlp", 1.03), ("cnn", 1.01)):
        ratios = medians({"bare": Program([program, "bare", model]), "trainer": Program([program, "trainer", model])}, rounds)
        figure(f"gpu_trainer_{model}_over_bare", ratios["trainer"], faster)
    ratios = medians({"alone": Program([program, "trainer", "cnn"]), "nccl": Program([program, "nccl", "cnn"])}, rounds)
    figure("gpu_nccl_of_one_over_none_cnn", ratios["nccl"], 1.01)
    ratios = medians({"fp32": Program([program, "trainer", "resnet18"]), "bf16": Program([program, "bf16", "resnet18"])}, rounds)
    figure("gpu_bf16_over_fp32_resnet18", ratios["bf16"], 1 / 1.6)


def gpu_on_cpu(program):
    """The part of gpu() that runs without a device, to check its programs. Bounds are those of a GPU."""
    for model in ("mlp", "cnn"):
        ratios = medians({"bare": Program([program, "bare", model]), "trainer": Program([program, "trainer", model])}, 2)
        figure(f"cpu_trainer_{model}_over_bare", ratios["trainer"], 1.03)
    ratios = medians({"fp32": Program([program, "trainer", "resnet18"]), "bf16": Program([program, "bf16", "resnet18"])}, 1)
    figure("cpu_bf16_over_fp32_resnet18", ratios["bf16"], 1.0)


if __name__ == "__main__":
    {"trainer": trainer, "precision": precision, "ddp": ddp, "exact": exact, "gpu": gpu, "gpu_on_cpu": gpu_on_cpu}[sys.argv[2]](os.path.join(sys.argv[1], "bench", "bench_train_segments"))
