#!/usr/bin/env python3
"""Owns running the end-to-end tests: tests/e2e/run.py BUILD_DIR [PATTERN]. Ends with `N passed, N failed`."""
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if len(sys.argv) < 2:
        print("usage: tests/e2e/run.py BUILD_DIR [PATTERN]", file=sys.stderr)
        return 2
    os.environ["DET_E2E_BUILD"] = str(pathlib.Path(sys.argv[1]).resolve())
    sys.path.insert(0, str(HERE))
    loader = unittest.TestLoader()
    if len(sys.argv) > 2:
        loader.testNamePatterns = [f"*{sys.argv[2]}*"]
    suite = loader.discover(str(HERE), pattern="test_*.py")
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A class or module that cannot set itself up reports one error but runs none of its tests.
    print(f"{max(0, result.testsRun - len(result.failures) - len(result.errors))} passed, {failed} failed")
    return 1 if failed or result.testsRun == 0 else 0


sys.exit(main())
