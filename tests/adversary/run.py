#!/usr/bin/env python3
"""Runs the attacks: tests/adversary/run.py BUILD_DIR [--jobs N] [PATTERN]. Ends with `N passed, N failed`."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "e2e"))

import runner  # noqa: E402

sys.exit(runner.main(HERE, __doc__))
