#!/usr/bin/env python3
"""Owns the measure of the MNIST example on two slots: images a second of two processes, a thread each, over those of one.
Both train on the same 64 digits a step. Short and long runs by turns; their difference is free of start and validation.

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


def configuration(folder, batches):
    data = os.environ.get("DET_MNIST", str(ROOT.parent / "shared" / "data" / "mnist"))
    text = (ROOT / "examples" / "mnist" / "distributed.yaml").read_text().replace("epochs: 1", f"batches: {batches}")
    path = pathlib.Path(folder) / f"{batches}.yaml"
    path.write_text(text + f"\ndata: {{dir: {data}}}\n")
    return path


def seconds(build, folder, ranks, batches):
    program = [f"{build}/examples/mnist_train", configuration(folder, batches)]
    if ranks > 1:
        program = [f"{build}/bin/det-launch", "--nproc-per-node", str(ranks), "--", *program]
    begin = time.monotonic()
    subprocess.run(program, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.monotonic() - begin


def main(build):
    build = pathlib.Path(build).resolve()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            one, two = (seconds(build, folder, ranks, LONG) - seconds(build, folder, ranks, SHORT) for ranks in (1, 2))
            images = 64 * (LONG - SHORT)
            print(f"one process {images / one:.0f} images/s, two {images / two:.0f}", file=sys.stderr, flush=True)
            ratios.append(one / two)
    ratio = statistics.median(ratios)
    print(f"mnist_two_slots_over_one {ratio:.4g} ratio >=1.8 {'ok' if ratio >= 1.8 else 'short'}")


if __name__ == "__main__":
    main(sys.argv[1])
