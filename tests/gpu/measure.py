"""Runs the harness tests and the figures of a build on this machine. measure.py BUILD_DIR BUILD_SECONDS

Prints a table and writes BUILD_DIR/result.json. Exit code 1 if a test fails; a figure that misses its bound is
marked `short`."""
import glob
import json
import os
import platform
import re
import subprocess
import sys
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
LONGEST_TEST = 240  # seconds
# These start up to four ranks, one per GPU; on fewer GPUs they train on the CPU.
SEVERAL_RANKS = {"harness_exact_test", "examples_training_test"}


def machine(build_seconds):
    cuda = torch.cuda.is_available()
    return {"device": torch.cuda.get_device_name(0) if cuda else "CPU only", "torch": torch.__version__,
            "cuda": torch.version.cuda, "python": platform.python_version(), "cores": os.cpu_count(),
            "build_seconds": build_seconds}


def counts(output, status):
    """Passed and failed test cases of a Catch2 program."""
    if found := re.search(r"All tests passed \(.* in (\d+) test case", output):
        return int(found[1]), 0
    failed = re.search(r"^test cases:.*?(\d+) failed", output, re.M)
    passed = re.search(r"^test cases:.*?(\d+) passed", output, re.M)
    return int(passed[1]) if passed else 0, int(failed[1]) if failed else int(status != 0)


def run_tests(build):
    results = []
    programs = sorted(glob.glob(f"{build}/tests/harness_*_test") + glob.glob(f"{build}/tests/example*_test"))
    for program in programs:
        name, begin = os.path.basename(program), time.monotonic()
        hidden = name in SEVERAL_RANKS and torch.cuda.device_count() < 4
        env = dict(os.environ, CUDA_VISIBLE_DEVICES="") if hidden else None
        try:
            done = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=LONGEST_TEST, env=env)
            output, status = done.stdout + done.stderr, done.returncode
        except subprocess.TimeoutExpired as error:
            output, status = (error.stdout or b"").decode(errors="replace") + f"\nended after {LONGEST_TEST} s", 1
        passed, failed = counts(output, status)
        if status != 0 or passed == 0:
            failed = max(failed, 1)
        with open(f"{build}/{name}.log", "w", encoding="utf-8") as log:
            log.write(output)
        results.append({"program": name, "passed": passed, "failed": failed, "on_cpu": hidden or not torch.cuda.is_available(),
                        "seconds": round(time.monotonic() - begin, 1)})
        print(f"{name:36} {passed:5} passed {failed:3} failed {results[-1]['seconds']:7} s", flush=True)
    return results


def run_figures(build):
    kind = "gpu" if torch.cuda.is_available() else "gpu_on_cpu"
    done = subprocess.run([sys.executable, f"{HERE}/../bench/segments.py", build, kind], stdout=subprocess.PIPE, text=True,
                          check=False)
    figures = []
    for line in done.stdout.splitlines():
        if (words := line.split()) and len(words) == 5:
            figures.append(dict(zip(("name", "value", "unit", "bound", "state"), words), value=float(words[1])))
            print(f"{words[0]:36} {words[1]:>8} {words[2]} {words[3]:>7} {words[4]}", flush=True)
    return figures, done.returncode


def main():
    build, build_seconds = sys.argv[1], int(sys.argv[2])
    result = {"machine": machine(build_seconds)}
    print(" · ".join(f"{key} {value}" for key, value in result["machine"].items()), flush=True)
    result["tests"] = run_tests(build)
    result["figures"], status = run_figures(build)
    passed = sum(one["passed"] for one in result["tests"])
    failed = sum(one["failed"] for one in result["tests"]) + int(status != 0) + int(not result["tests"])
    if status != 0:
        print(f"segments.py ended with {status}: figures are missing")
    with open(f"{build}/result.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
    print(f"{build}/result.json\n{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
