#!/usr/bin/env python3
"""Time from `det experiment create` to the first training step with a warm build cache, compared with a cold
start of the same trial program by hand, alternating. With --before, the cluster of another build takes its turn
too.
tests/bench/latency.py BUILD_DIR [ROUNDS] [--before BUILD_DIR]"""
import argparse
import contextlib
import datetime
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402

CONFIG = """
name: latency
entrypoint: model_def:TinyTrial
hyperparameters: {global_batch_size: 32, learning_rate: 0.01}
searcher: {name: single, metric: validation_loss, max_length: {batches: 1}}
scheduling_unit: 1
"""


def from_create(cluster):
    """Seconds from starting the det command to the trial's report of step 1."""
    begin = time.time()
    id = cluster.create(ROOT / "tests" / "e2e" / "fixtures" / "tiny", CONFIG)
    cluster.wait_state(id, "COMPLETED")
    workloads = cluster.trial(cluster.trial_id(id))["workloads"]
    first = next(w["training"] for w in workloads if w.get("training"))
    return datetime.datetime.fromisoformat(first["endTime"].replace("Z", "+00:00")).timestamp() - begin


def by_hand(cluster, model, config):
    """Seconds from starting the same program without a cluster to its report of step 1."""
    begin = time.monotonic()
    process = subprocess.Popen([cluster.bin / "det-harness", "--config", config, f"{model}:TinyTrial"],
                               cwd=cluster.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = None
    for line in process.stdout:
        if took is None and "training" in line and "loss" in line:
            took = time.monotonic() - begin
    process.wait()
    if took is None:
        raise SystemExit("latency: the local run printed no training report")
    return took


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("rounds", nargs="?", type=int, default=20)
    parser.add_argument("--before", metavar="BUILD_DIR", help="another build to compare with")
    return parser.parse_args()


def main():
    args = parse()
    with contextlib.ExitStack() as stack:
        def start(build):
            cluster = stack.enter_context(Cluster(build))
            cluster.start_agent("a1", options=["--sandbox", "required"])
            from_create(cluster)  # Builds the model.
            return cluster

        cluster = start(args.build)
        before = start(args.before) if args.before else None
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        built = (cache / "determined" / "models").glob("*/model.so")
        model = max(built, key=lambda path: path.parent.stat().st_mtime)  # used last
        config = cluster.dir / "latency.yaml"
        config.write_text(CONFIG)
        created, created_before, local = [], [], []
        for _ in range(args.rounds):
            created.append(1000 * from_create(cluster))
            if before:
                created_before.append(1000 * from_create(before))
            local.append(1000 * by_hand(cluster, model, config))

    def bounded(name, value, bound):
        print(f"{name} {value:.1f} ms {bound} {'ok' if value <= bound else 'short'}")

    median = statistics.median(created)
    bounded("create_to_first_step", median, 60)
    if before:
        print(f"create_to_first_step_before {statistics.median(created_before):.1f} ms - ok")
    print(f"cold_start_by_hand {statistics.median(local):.1f} ms - ok")
    bounded("create_over_cold_start", median - statistics.median(local), 100)


main()
