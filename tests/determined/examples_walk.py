"""Runs Determined's tutorials and feature examples, unmodified, with its own client: examples_walk.py EXAMPLES MASTER
[PART...], only those whose names contain a PART. Experiments run on the cluster, detached ones in processes of this machine. Ends with `N passed, N failed`."""
import os
import pathlib
import subprocess
import sys
import time

from determined.experimental import client

CORE, MNIST, CORE_MNIST, DETACHED = ("tutorials/core_api", "tutorials/mnist_pytorch", "tutorials/core_api_pytorch_mnist",
                                     "features/unmanaged")
# The cluster of the tests has one slot; examples for several slots run on it. Left out: distributed.yaml of
# core_api_pytorch_mnist, which needs NCCL.
ONE_SLOT = ("--config", "resources.slots_per_trial=1")
EXPERIMENTS = [
    (CORE, "0_start.yaml"), (CORE, "1_metrics.yaml"), (CORE, "2_checkpoints.yaml"), (CORE, "3_hpsearch.yaml"),
    (CORE, "4_distributed.yaml", *ONE_SLOT),
    (CORE_MNIST, "const.yaml"), (CORE_MNIST, "metrics.yaml"), (CORE_MNIST, "checkpoints.yaml"),
    (CORE_MNIST, "adaptive.yaml", "--config", "searcher.max_trials=2"),
    (MNIST, "const.yaml"), (MNIST, "adaptive.yaml", "--config", "searcher.max_trials=2"),
    (MNIST, "distributed.yaml", *ONE_SLOT), (MNIST, "dist_random.yaml"),
    (DETACHED, "1.yaml"), (DETACHED, "2.yaml"), (DETACHED, "3.yaml", *ONE_SLOT),
]
PROCESSES = [("1_singleton.py",), ("2_checkpoints.py",),
             ("-m", "torch.distributed.run", "--nnodes=1", "--nproc_per_node=2", "--master_addr", "127.0.0.1", "--master_port",
              "29400", "--max_restarts", "0", "3_torch_distributed.py")]


DETAIL = 4000  # characters of the output of what fails


def newest():
    found = client.list_experiments(sort_by=client.ExperimentSortBy.ID, order_by=client.OrderBy.DESC)
    return found[0] if found else None


def run_on_cluster(examples, directory, config, *options):
    """Returns the reason of a failure, or None."""
    done = subprocess.run(["det", "experiment", "create", *options, config, ".", "-f"], cwd=examples / directory,
                          capture_output=True, text=True, timeout=1200, check=False)
    # -f follows the first trial only.
    state = newest().wait() if done.returncode == 0 else None
    if state == client.ExperimentState.COMPLETED:
        return None
    return f"exit {done.returncode}, {state}: " + (done.stderr or done.stdout)[-DETAIL:].replace("\n", " | ")


def run_detached(examples, *words):
    before = newest()
    done = subprocess.run([sys.executable, *words], cwd=examples / DETACHED, capture_output=True, text=True, timeout=300,
                          check=False)
    made = newest()
    if done.returncode != 0 or (before and made.id == before.id):
        return f"exit {done.returncode}: {done.stderr[-400:]}"
    trials = made.list_trials()
    steps = [metric.steps_completed for trial in trials for metric in trial.iter_metrics(group="training")]
    return None if made.state == client.ExperimentState.COMPLETED and len(steps) == 100 else f"{made.state}, {len(steps)} reports"


def main():
    examples = pathlib.Path(sys.argv[1])
    os.environ["DET_MASTER"] = sys.argv[2]
    client.login(sys.argv[2])
    failed, parts = 0, sys.argv[3:] or [""]
    calls = [*((f"{run[0]}/{run[1]}", lambda run=run: run_on_cluster(examples, *run)) for run in EXPERIMENTS),
             *((f"{DETACHED}/{words[-1]}", lambda words=words: run_detached(examples, *words)) for words in PROCESSES)]
    calls = [call for call in calls if any(part in call[0] for part in parts)]
    for name, call in calls:
        begin = time.monotonic()
        why = call()
        failed += why is not None
        print(f"{'ok' if why is None else 'FAILED':7}{name} ({time.monotonic() - begin:.0f} s) {why or ''}", flush=True)
    print(f"{len(calls) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
