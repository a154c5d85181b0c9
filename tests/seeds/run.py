#!/usr/bin/env python3
"""Trains what the seed documents promise: tests/seeds/run.py BUILD_DIR [PATTERN]. The YAML blocks of the documents
are submitted byte for byte; the examples' files, steps and entry points at short length. With DET_TEST_LONG=1 the
examples with a published figure train at full length, three seeds each, and build/test-logs/seeds.md gets the table.
Documents: ../shared/seeds or DET_TEST_SEEDS. Data: ../shared/data or DET_TEST_DATA. Without them the suite is
skipped. Ends with `N passed, N failed`."""
import pathlib
import sys

E2E = pathlib.Path(__file__).resolve().parent.parent / "e2e"
sys.path.insert(0, str(E2E))
import runner  # noqa: E402

sys.exit(runner.main(pathlib.Path(__file__).resolve().parent, __doc__))
