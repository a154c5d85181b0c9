#!/usr/bin/env bash
# Builds the training library, its tests and the examples with the LibTorch of this machine, and runs the tests.
# Ends with "N passed, N failed". tests/run.sh torch runs this in a Debian unstable of its own.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$PWD/build/torch
mkdir -p "$build"
passed=0 failed=0
end() { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; exit; }

{
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDET_CLUSTER=OFF -DDET_WEBUI=OFF -DDET_TESTS=ON &&
    ninja -C "$build" -k 0
} >"$build/build.log" 2>&1 || {
  failed=1
  echo "the build failed: $build/build.log"
  grep -aE 'error:|FAILED' "$build/build.log" | head -n 40 | sed 's/^/    /'
}
"$build/bin/det-harness" --version
for program in "$build"/tests/*_test; do
  name=$(basename "$program")
  status=0
  timeout 900 "$program" >"$build/$name.log" 2>&1 || status=$?
  cases=$(sed -nE 's/^All tests passed \(.* in ([0-9]+) test cases?\).*/\1/p; s/^test cases: .*\| *([0-9]+) passed.*/\1/p' "$build/$name.log" | tail -n 1)
  bad=$(sed -nE 's/^test cases: .*\| *([0-9]+) failed.*/\1/p' "$build/$name.log" | tail -n 1)
  [ "$status" -eq 0 ] || bad=${bad:-1}
  passed=$((passed + ${cases:-0})) failed=$((failed + ${bad:-0}))
  printf '%-32s %5d passed %3d failed\n' "$name" "${cases:-0}" "${bad:-0}"
  [ "${bad:-0}" -eq 0 ] || tail -n 30 "$build/$name.log" | sed 's/^/    /'
done
end
