"""Runs the test_*.py files of a folder, for tests/e2e/run.py and tests/adversary/run.py."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

E2E = pathlib.Path(__file__).resolve().parent


class TimedResult(unittest.TextTestResult):
    """Prints the duration of a test behind its outcome."""

    def startTest(self, test):
        self.begin = time.monotonic()
        super().startTest(test)

    def addSuccess(self, test):
        unittest.TestResult.addSuccess(self, test)
        self.stream.writeln(f"ok ({time.monotonic() - self.begin:.1f} s)")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.show_evidence(test)

    def addError(self, test, err):
        super().addError(test, err)
        self.show_evidence(test)

    def show_evidence(self, test):
        """Prints what the test, its pool, its Slurm or its cluster knows, before the clean-up removes it."""
        sources = [test, *(getattr(test, name, None) for name in ("pool", "slurm", "cluster"))]
        source = next((one for one in sources if hasattr(one, "evidence")), None)
        try:
            self.stream.writeln(source.evidence() if source else "")
        except Exception as error:  # The failure itself counts more than its evidence.
            self.stream.writeln(f"no evidence: {error}")


def run_here(suite):
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=TimedResult).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A class or module with a failing setup reports one error and runs none of its tests.
    passed = result.testsRun - len(result.failures) - len(result.errors) - len(result.skipped)
    return max(0, passed), failed, len(result.skipped)


def classes_of(suite):
    """The classes of a suite's tests. A module that cannot be imported counts as one."""
    found = []
    for entry in suite:
        names = classes_of(entry) if isinstance(entry, unittest.TestSuite) else [entry.id().rpartition(".")[0]]
        found += [name for name in names if name not in found]
    return found


def run_class(build, name):
    """Runs one class in a process of its own. Returns its counts (passed, failed, skipped) and its output."""
    done = subprocess.run([sys.executable, sys.argv[0], build, f"{name}.test_"], capture_output=True, text=True, errors="replace")
    output = done.stdout + done.stderr
    print(output, flush=True)
    found = re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", done.stdout, re.MULTILINE)
    counts = tuple(int(count or 0) for count in found[-1]) if found else (0, 1, 0)
    return counts, output


def main(folder, description):
    """Runs the tests of `folder` as the command line says: BUILD_DIR [--jobs N] [PATTERN]. Prints `N passed, N
    failed`. Returns the exit status. With --jobs, N test classes run at a time, each in a process and a cluster
    of its own: most of a test's time is waiting."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("build")
    parser.add_argument("pattern", nargs="?")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_intermixed_args()
    if options.jobs != 1 and options.pattern:
        parser.error("--jobs runs whole classes; leave PATTERN out")
    os.environ["DET_E2E_BUILD"] = str(pathlib.Path(options.build).resolve())
    # The tests of every folder import cluster.py.
    sys.path[:0] = [str(folder), str(E2E)]
    loader = unittest.TestLoader()
    if options.pattern:
        loader.testNamePatterns = [f"*{options.pattern}*"]
    suite = loader.discover(str(folder), pattern="test_*.py")
    if options.jobs == 1:
        passed, failed, skipped = run_here(suite)
    else:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as workers:
            results = list(workers.map(lambda name: run_class(options.build, name), classes_of(suite)))
        passed, failed, skipped = (sum(column) for column in zip(*(counts for counts, _ in results))) if results else (0, 0, 0)
        # Failures come once more at the end, where tests/run.sh and its reader look.
        for counts, output in results:
            if counts[1]:
                print(output)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed or passed + skipped == 0 else 0

