#!/usr/bin/env python3
"""Time from `det experiment create` to the first training step with a warm build cache, compared with a cold
start of the same trial program by hand and with a cluster without sandboxes, alternating.
tests/bench/latency.py BUILD_DIR [ROUNDS]"""
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


def main():
    build, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with Cluster(build) as cluster, Cluster(build) as open_cluster:
        cluster.start_agent("a1", options=["--sandbox", "required"])
        open_cluster.start_agent("a1", options=["--sandbox", "off"])
        from_create(cluster)  # Builds the model.
        from_create(open_cluster)
        cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
        built = (cache / "determined" / "models").glob("*/model.so")
        model = max(built, key=lambda path: path.parent.stat().st_mtime)  # used last
        config = cluster.dir / "latency.yaml"
        config.write_text(CONFIG)
        created, unconfined, local = [], [], []
        for _ in range(rounds):
            created.append(from_create(cluster))
            unconfined.append(from_create(open_cluster))
            local.append(by_hand(cluster, model, config))
    extra = (statistics.median(created) - statistics.median(local)) * 1000
    print(f"create_to_first_step {statistics.median(created) * 1000:.0f} ms - ok")
    print(f"cold_start_by_hand {statistics.median(local) * 1000:.0f} ms - ok")
    # The fastest of many rounds: other load of the machine does not make a start faster.
    cost = (min(created) - min(unconfined)) * 1000
    print(f"sandbox_cost {cost:.0f} ms 15 {'ok' if cost <= 15 else 'short'}")
    print(f"sandbox_cost_of_medians {(statistics.median(created) - statistics.median(unconfined)) * 1000:.0f} ms - ok")
    print(f"create_over_cold_start {extra:.0f} ms 100 {'ok' if extra <= 100 else 'short'}")


main()
