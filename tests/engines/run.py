#!/usr/bin/env python3
"""Runs the tests on real engines: tests/engines/run.py BUILD_DIR [--jobs N] [PATTERN]. Ends with `N passed, N
failed`. Needs root and the packages of `deploy/deps.sh engines`."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import runner  # noqa: E402

sys.exit(runner.main(HERE, __doc__))
