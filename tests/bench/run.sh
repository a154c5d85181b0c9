#!/usr/bin/env bash
# Owns running the benchmarks: tests/bench/run.sh [NAME...]   (all without a name). Prints `name value unit bound ok|short`,
# a line a figure; exit code 1 when a figure is short.
#   trainer  the trainer beside the same loop by hand, alternating in one process; the MNIST loader
#   latency  `det experiment create` to the first training step beside a cold start by hand, on real processes
set -euo pipefail
cd "$(dirname "$0")/../.."
names=("$@")
[ $# -gt 0 ] || names=(trainer latency)
cmake --preset bench >&2
status=0
for name in "${names[@]}"; do
  case "$name" in
    trainer) targets=(bench_trainer) command=(build/bench/bench/bench_trainer) ;;
    latency) targets=(programs) command=(python3 tests/bench/latency.py build/bench) ;;
    *) echo "no such benchmark: $name (there are: trainer, latency)" >&2; exit 2 ;;
  esac
  cmake --build build/bench --target "${targets[@]}" >&2
  while read -r line; do
    echo "$line"
    if [[ $line == *" short" ]]; then status=1; fi
  done < <("${command[@]}")
done
exit $status
