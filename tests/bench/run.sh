#!/usr/bin/env bash
# Owns running the benchmarks: tests/bench/run.sh [NAME...]   Builds the preset `bench`, runs the programs bench_NAME (all
# without a name), and prints `name value unit bound ok|short`, a line a figure. Exit code 1 when a figure is short.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset bench >&2
targets=$(ninja -C build/bench -t targets all | sed -n 's|^\(bench/bench_[a-z_]*\):.*|\1|p')
wanted=()
for target in $targets; do
  name=${target#bench/bench_}
  if [ $# -eq 0 ] || [[ " $* " == *" $name "* ]]; then wanted+=("$target"); fi
done
if [ "${#wanted[@]}" -eq 0 ]; then echo "no such benchmark: $*" >&2; exit 2; fi
ninja -C build/bench -j1 "${wanted[@]}" >&2
status=0
for target in "${wanted[@]}"; do
  while read -r line; do
    echo "$line"
    if [[ $line == *" short" ]]; then status=1; fi
  done < <("build/bench/$target")
done
exit $status
