#!/usr/bin/env python3
"""Ingest rate of a real master, with client, master and PostgreSQL on the same two processors.
tests/bench/ingest.py BUILD_DIR [SECONDS]"""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from cluster import Cluster  # noqa: E402


def database_of(cluster):
    """The libpq connection string of the master's private PostgreSQL."""
    lines = (cluster.dir / "master" / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    return f"host='{lines[4]}' port=5432 user=det dbname=det"


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with Cluster(build) as cluster:
        subprocess.run([build / "bench" / "bench_ingest", f"127.0.0.1:{cluster.port}",
                        cluster.dir / "master" / "admin-password", database_of(cluster), *sys.argv[2:3]], check=True)


if __name__ == "__main__":
    main()
