#!/usr/bin/env python3
"""Runs the end-to-end tests: tests/e2e/run.py BUILD_DIR [--jobs N] [PATTERN]. Ends with `N passed, N failed`."""
import pathlib
import sys

import runner

sys.exit(runner.main(pathlib.Path(__file__).resolve().parent, __doc__))
