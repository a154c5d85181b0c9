#!/usr/bin/env bash
# Checks that need a GPU. Needs CUDA, NCCL and a LibTorch built for CUDA (a Python package of torch suffices).
# Builds the training library without the cluster, runs its tests, then the benchmarks: trainer overhead over
# a hand-written loop, mixed precision, and one process with and without NCCL hooks.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 - <<'CHECK' || { echo "tests/gpu/run.sh: python3 has no torch that sees a GPU" >&2; exit 2; }
import torch
assert torch.cuda.is_available()
print("LibTorch", torch.__version__, "on", torch.cuda.get_device_name(0))
CHECK
build=build/gpu
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDET_CLUSTER=OFF -DDET_WEBUI=OFF -DDET_BENCH=ON
cmake --build "$build"
if [ -x "$build/tests/harness_test" ]; then
  for test in "$build"/tests/harness_*_test; do "$test"; done
fi
python3 tests/bench/segments.py "$build" gpu
