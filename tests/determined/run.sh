#!/usr/bin/env bash
# Runs Determined's own client and end-to-end tests against a cluster of this build: tests/determined/run.sh
# [--build DIR] [-k EXPR]. Needs a copy of Determined's repository in DET_UPSTREAM; without one it is a skip.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
exec "${DET_PYTHON:-/usr/bin/python3}" "$here/run.py" "$@"
