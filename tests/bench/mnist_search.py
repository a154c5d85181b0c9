#!/usr/bin/env python3
"""A search on real data: the MNIST example's adaptive.yaml against random search over the same space, where
each trial trains to the end. Compares the best accuracy and the batches that it took.

mnist_search.py BUILD_DIR     see run.sh; DET_MNIST is the directory of MNIST's four files"""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402

SEED = "\nreproducibility: {experiment_seed: 5}\n"


def outcome(cluster, config):
    """Returns the best accuracy and the batches of all trials."""
    id = cluster.create(ROOT / "examples" / "mnist", config)
    cluster.wait_state(id, "COMPLETED", timeout=3000)
    trials = cluster.experiment(id)["trials"]
    batches = sum(trial.get("totalBatchesProcessed", 0) for trial in trials)
    best = max(cluster.metrics_best(trial["id"], "accuracy") for trial in trials)
    print(f"{len(trials)} trials, {batches} batches, best accuracy {best:.4f}", file=sys.stderr, flush=True)
    return best, batches


def main(build):
    data = os.environ.get("DET_MNIST", str(ROOT.parent / "shared" / "data" / "mnist"))
    adaptive = (ROOT / "examples" / "mnist" / "adaptive.yaml").read_text() + f"\ndata: {{dir: {data}}}" + SEED
    head, searcher = adaptive.split("searcher:\n")
    tail = searcher[searcher.index("entrypoint:"):]
    full = head + ("searcher: {name: random, metric: accuracy, smaller_is_better: false, max_trials: 16,\n"
                   "           max_concurrent_trials: 2, max_length: {batches: 937}}\n") + tail
    with Cluster(build) as cluster:
        cluster.start_agent("pair", slots=2)
        halved, few = outcome(cluster, adaptive)
        best, many = outcome(cluster, full)
    loss = best - halved
    print(f"mnist_search_accuracy_behind_random {loss:.4g} difference <=0.005 {'ok' if loss <= 0.005 else 'short'}")
    share = few / many
    print(f"mnist_search_batches_over_random {share:.4g} ratio <=0.5 {'ok' if share <= 0.5 else 'short'}")


if __name__ == "__main__":
    main(sys.argv[1])
