#!/usr/bin/env python3
"""Figures of a master with 10,000 experiments and 1,000,000 metric points: reads beside reports, the
command's list, and a restart with 100 running trials. tests/bench/reads.py BUILD_DIR [SECONDS]"""
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402
from ingest import database_of  # noqa: E402

EXPERIMENTS = 10000
CONFIG = """
name: stored
entrypoint: ['true']
hyperparameters: {rate: {type: double, minval: 0, maxval: 1}}
searcher: {name: single, metric: loss, max_length: {batches: 100}}
"""
# Copies of the first experiment, which was submitted normally.
FILL = """
DO $$ DECLARE one experiments; run trials; BEGIN
  SELECT * INTO one FROM experiments WHERE id = 1;
  SELECT * INTO run FROM trials WHERE experiment_id = 1;
  FOR i IN 2..%d LOOP
    one.id = i; one.request_id = 'stored' || i; one.job_id = gen_random_uuid(); one.name = 'stored ' || i;
    one.state = 'COMPLETED'; one.ended = now(); one.progress = 1;
    INSERT INTO experiments VALUES (one.*);
    run.id = i; run.experiment_id = i; run.request_id = gen_random_uuid(); run.task_id = i || '.' || run.request_id;
    run.state = 'COMPLETED'; run.ended = now(); run.run = 1; run.best_metric = i; run.steps_completed = 100;
    INSERT INTO trials VALUES (run.*);
  END LOOP;
END $$;
INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics)
  SELECT t, 1, 'training', s, now(), '{"loss":0.6931471805599453,"accuracy":0.9125}'
  FROM generate_series(1, %d) t, generate_series(1, 100) s;
INSERT INTO metrics (trial_id, run, grp, steps_completed, reported, metrics, searcher_metric)
  SELECT t, 1, 'validation', 100, now(), '{"loss":0.5}', 0.5 FROM generate_series(1, %d) t;
VACUUM ANALYZE;
"""


def figure(name, value, unit, bound):
    print(f"{name} {value:.4g} {unit} <={bound:g} {'ok' if value <= bound else 'short'}", flush=True)


def fill(cluster):
    cluster.create(ROOT / "tests" / "e2e" / "fixtures" / "tiny", CONFIG)
    cluster.det("experiment", "kill", "1")
    subprocess.run(["psql", database_of(cluster), "-q", "-v", "ON_ERROR_STOP=1"], text=True, check=True,
                   input=FILL % (EXPERIMENTS, EXPERIMENTS, EXPERIMENTS))


def restart(cluster):
    """Seconds from starting a master after a kill to its first list."""
    cluster.kill_master()
    begin = time.monotonic()
    cluster.start_master()
    cluster.det("experiment", "list", "--limit", "10", "--pages", "1")
    return time.monotonic() - begin


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    seconds = sys.argv[2] if len(sys.argv) > 2 else "20"
    with Cluster(build) as cluster:
        fill(cluster)
        figure("restart_10000_stored", restart(cluster), "s", 10)
        load = subprocess.Popen([build / "bench" / "bench_reads", f"127.0.0.1:{cluster.port}",
                                 cluster.dir / "master" / "admin-password", str(EXPERIMENTS), seconds],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for line in load.stdout:
            if line == "running\n":
                break
            print(line, end="", flush=True)
        took, floor = [], []
        for _ in range(15):
            begin = time.monotonic()
            rows = cluster.det("experiment", "list", "--all", "--limit", "1000", "--pages", "1").splitlines()
            took.append(time.monotonic() - begin)
            begin = time.monotonic()
            subprocess.run([cluster.bin / "det", "--help"], capture_output=True)
            floor.append(time.monotonic() - begin)
        assert len(rows) > 1000
        figure("cli_list_1000_rows", statistics.median(took) * 1e3, "ms", 150)
        figure("cli_start", statistics.median(floor) * 1e3, "ms", 150)
        figure("restart_100_running", restart(cluster), "s", 3)
        load.communicate()


main()
