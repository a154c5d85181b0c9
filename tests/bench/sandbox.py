"""Cost of the sandbox of a task: pairs of starts of `true` by det-supervisor, with a sandbox and without, in turn.
sandbox.py BUILD_DIR [PAIRS]. Prints one figure: the median of the differences of a pair."""
import base64
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

PAIRS = 100
BOUND = 15  # Milliseconds.
UID = 1_900_000_000


def text(value):
    return base64.b64encode(value.encode()).decode()


def make_spec(directory, sandboxed, programs):
    """Writes spec.json of common/task/task_dir.h."""
    run, tmp, work = (directory / name for name in ("run", "tmp", "workdir"))
    for path in (run, tmp, work):
        path.mkdir(parents=True)
    tmp.chmod(0o1777)
    spec = {"argv": [text("/bin/true")], "env": [text("PATH=/usr/bin:/bin")], "cwd": text("/"), "attaches": False,
            "grace_micros": 1_000_000, "unshipped_bytes": 1 << 20}
    if sandboxed:
        # As agent/task_sandbox.cc plans it: programs, an empty data directory, the task's own files.
        mounts = [(programs, programs, 0), ("", directory.parent, 3), (directory / "spec.json", directory / "spec.json", 0),
                  (work, work, 1), (run, run, 1)]
        spec["sandbox"] = {"tmp": text(str(tmp)), "shm_bytes": 0,
                           "mounts": [[text(str(path)), text(str(inside)), access] for path, inside, access in mounts]}
        if os.geteuid() == 0:
            spec["sandbox"]["uid"] = UID
    (directory / "spec.json").write_text(json.dumps(spec))


def start(programs, place, sandboxed):
    """(wall seconds, CPU seconds) from the start of the supervisor to the end of the task."""
    directory = place / f"task-{time.monotonic_ns()}"
    make_spec(directory, sandboxed, programs)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    subprocess.run([programs / "bin/det-supervisor", directory], check=True, env={**os.environ, "DET_RUN_DIR": str(directory / "run")})
    took = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = json.loads((directory / "exit.json").read_text())
    if (ended["code"], ended["signal"]) != (0, 0):
        raise SystemExit(f"the task failed: {ended}\n{(directory / 'log').read_text(errors='replace')}")
    return took, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS
    with tempfile.TemporaryDirectory(prefix="det-sandbox-") as place:
        os.chmod(place, 0o755)
        wall, cpu = [], []
        for _ in range(pairs):
            inside, outside = start(programs, pathlib.Path(place), True), start(programs, pathlib.Path(place), False)
            wall.append(1000 * (inside[0] - outside[0]))
            cpu.append(1000 * (inside[1] - outside[1]))
    cost = statistics.median(wall)
    print(f"sandbox_cpu {statistics.median(cost for cost in cpu):.1f} ms - -")
    print(f"sandbox_start {cost:.1f} ms {BOUND} {'ok' if cost <= BOUND else 'short'}")
    return 0 if cost <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
