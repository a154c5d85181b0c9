#!/usr/bin/env python3
"""The MNIST example on two slots: images a second of two single-threaded processes relative to one. Measured
as configured, with 64 digits a step on each process, and with the 64 digits of const.yaml shared by both,
which doubles the weight of exchange and optimizer. Short and long runs alternate; their difference excludes
start and validation.

mnist_ranks.py BUILD_DIR     see run.sh; DET_MNIST is the directory of MNIST's four files"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHORT, LONG, ROUNDS = 40, 340, 5


def configuration(folder, batch_size, batches):
    data = os.environ.get("DET_MNIST", str(ROOT.parent / "shared" / "data" / "mnist"))
    text = (ROOT / "examples" / "mnist" / "distributed.yaml").read_text()
    for old, new in (("epochs: 1", f"batches: {batches}"), ("global_batch_size: 128", f"global_batch_size: {batch_size}")):
        if old not in text:
            sys.exit(f"distributed.yaml has no {old!r}")
        text = text.replace(old, new)
    path = pathlib.Path(folder) / f"{batch_size}_{batches}.yaml"
    path.write_text(text + f"\ndata: {{dir: {data}}}\n")
    return path


def seconds(build, folder, ranks, batch_size, batches):
    program = [f"{build}/examples/mnist_train", configuration(folder, batch_size, batches)]
    if ranks > 1:
        program = [f"{build}/bin/det-launch", "--nproc-per-node", str(ranks), "--", *program]
    begin = time.monotonic()
    subprocess.run(program, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.monotonic() - begin


def images_a_second(build, folder, ranks, batch_size):
    short, long = (seconds(build, folder, ranks, batch_size, batches) for batches in (SHORT, LONG))
    return batch_size * (LONG - SHORT) / (long - short)


def main(build):
    build = pathlib.Path(build).resolve()
    each, shared = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            one, two, together = (images_a_second(build, folder, *how) for how in ((1, 64), (2, 128), (2, 64)))
            print(f"one process {one:.0f} images/s, two {two:.0f}, two with its batch {together:.0f}", file=sys.stderr, flush=True)
            each.append(two / one)
            shared.append(together / one)
    for name, ratios, bound in (("mnist_two_slots_over_one", each, 1.8), ("mnist_two_slots_over_one_same_batch", shared, 1.7)):
        ratio = statistics.median(ratios)
        print(f"{name} {ratio:.4g} ratio >={bound:g} {'ok' if ratio >= bound else 'short'}")


if __name__ == "__main__":
    main(sys.argv[1])
