#!/usr/bin/env python3
"""Three figures of the det command: its start, and on a real master, including process start, listing 1,000
experiments and creating an experiment of a project that the master has stored before.
tests/bench/cli.py BUILD_DIR [ROUNDS]"""
import json
import pathlib
import statistics
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402

CONFIG = """
name: bench
entrypoint: run
searcher: {name: single, metric: loss, max_length: {batches: 1}}
"""
ROWS = 1000


def figure(name, values, bound):
    value = statistics.median(values)
    print(f"{name} {value * 1000:.1f} ms <={bound * 1000:.0f} {'ok' if value <= bound else 'short'}", flush=True)


def seconds_of(body):
    begin = time.monotonic()
    body()
    return time.monotonic() - begin


def main():
    build, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20
    with Cluster(build) as cluster:
        figure("cli_start", [seconds_of(lambda: cluster.det("--version")) for _ in range(rounds)], 0.01)
        token = cluster.det("dev", "auth-token").strip()
        body = json.dumps({"config": CONFIG, "activate": False}).encode()
        for _ in range(ROWS):
            request = urllib.request.Request(cluster.url + "/api/v1/experiments", body,
                                             {"Authorization": "Bearer " + token})
            urllib.request.urlopen(request).read()
        rows = cluster.det("experiment", "list").count("\n") - 2
        if rows != ROWS:
            raise SystemExit(f"cli: the list has {rows} rows, not {ROWS}")
        figure("cli_list_1000", [seconds_of(lambda: cluster.det("experiment", "list")) for _ in range(rounds)], 0.15)
        config = cluster.dir / "const.yaml"
        config.write_text(CONFIG)
        create = ("experiment", "create", config, ROOT / "examples" / "mnist", "--paused")
        cluster.det(*create)
        figure("cli_create_unchanged", [seconds_of(lambda: cluster.det(*create)) for _ in range(rounds)], 0.3)


if __name__ == "__main__":
    main()
