#!/usr/bin/env python3
"""A real search: 1,000 trials that sleep for a second, on 8 slots, compared with the ideal time.

search.py BUILD_DIR [TRIALS]     see run.sh"""
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import Cluster  # noqa: E402

SLOTS, STEPS, MILLISECONDS = 8, 4, 250
CONFIG = """
name: thousand
entrypoint: [{program}]
max_restarts: 0
hyperparameters: {{x: {{type: double, minval: 0, maxval: 1}}, steps: {steps}, milliseconds: {milliseconds}}}
searcher: {{name: adaptive_asha, metric: loss, max_trials: {trials}, max_time: {steps}, time_metric: batches, divisor: 4,
           bracket_rungs: [1], max_concurrent_trials: {slots}}}
resources: {{slots_per_trial: 1}}
checkpoint_policy: none
"""


def main(build, trials):
    with Cluster(build) as cluster, tempfile.TemporaryDirectory() as folder:
        cluster.start_agent("eight", slots=SLOTS)
        program = pathlib.Path(build).resolve() / "bin" / "search_program"
        begin = time.monotonic()
        id = cluster.create(folder, CONFIG.format(program=program, steps=STEPS, milliseconds=MILLISECONDS, trials=trials,
                                                  slots=SLOTS))
        # Polls rarely, because polling takes CPU time from the search.
        cluster.det("experiment", "wait", id, "--polling-interval", "0.5", timeout=1500)
        seconds = time.monotonic() - begin
        made = cluster.experiment(id)["trials"]
        steps = sum(trial.get("totalBatchesProcessed", 0) for trial in made)
        ideal = steps * MILLISECONDS / 1000 / SLOTS
        print(f"{len(made)} trials, {steps} steps: {seconds:.1f} s, at best {ideal:.1f} s", file=sys.stderr)
        over = seconds / ideal
        print(f"search_makespan_over_ideal {over:.4g} ratio <=1.05 {'ok' if over <= 1.05 else 'short'}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
