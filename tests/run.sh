#!/usr/bin/env bash
# Installs what tests need, builds, runs every test and ends with `N passed, N failed`.
# Suites: unit (release) · asan (pure rooms under ASan + UBSan) · tidy (house rules) · e2e (real processes) ·
# adversary (real processes, attacked) · chaos (real processes, killed) · engines (a real Slurm) · browser ·
# seeds (the seed documents' configurations and steps) · cuda (a build with LibTorch for CUDA, in a Debian 13 of its own) ·
# torch (the newest LibTorch, in a Debian unstable of its own).
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: tests/run.sh [--long] [SUITE…]
  SUITE   unit, asan, tidy, e2e, seeds, adversary, chaos, engines, browser, cuda, torch (default: all but cuda and
          torch; engines only for root). seeds needs ../shared/seeds and ../shared/data. cuda downloads 2.6 GB,
          torch 1 GB, once.
  --long  adds the hours-long kind: more simulator seeds, more kills, fuzzing, the examples on real data
TEXT
}

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
suites=() long=0
for argument in "$@"; do
  case "$argument" in
    --long) long=1 ;;
    unit | asan | tidy | e2e | seeds | adversary | chaos | engines | browser | cuda | torch) suites+=("$argument") ;;
    -h | --help) usage; exit 0 ;;
    *) echo "tests/run.sh: unknown suite $argument" >&2; usage >&2; exit 2 ;;
  esac
done
if [ "${#suites[@]}" -eq 0 ]; then
  suites=(tidy unit asan e2e seeds adversary chaos browser)
  # slurmd switches users, so Slurm needs root.
  if [ "$(id -u)" -eq 0 ]; then suites+=(engines); fi
fi
export DET_TEST_LONG=$long
wants() { case " ${suites[*]} " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

passed=0 failed=0 skipped=0 failures=()
logs=$root/build/test-logs
mkdir -p "$logs"

# Stops the processes below a process, also those in sessions of their own, and prints them. A stopped one starts no others.
stop_below() {
  local child
  for child in $(pgrep -P "$1"); do
    if [ "$child" != "$BASHPID" ] && kill -STOP "$child" 2>/dev/null; then echo "$child" && stop_below "$child"; fi
  done
}

# Ended by a signal, the script ends everything that it started: also the supervisors of tests' tasks, which outlive their
# agents. A trap waits for a command in the foreground, so commands that take long run in the background.
end_all() {
  kill -KILL $(stop_below $$) 2>/dev/null
  pkill -KILL -f "^$root/build/[^ ]*/det-supervisor ${TMPDIR:-/tmp}/det-"
  echo "tests/run.sh: ended by a signal"
  exit 130
}
trap end_all INT TERM

# count NAME LOG STATUS SECONDS CPU_SECONDS: adds a finished program's own count to the total. A program that ended
# badly without saying which test failed counts as one failure.
count() {
  local name=$1 log=$2 status=$3 line s p=0 f=0
  if line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1) && [ -n "$line" ]; then
    p=${line%% passed*} f=$(echo "$line" | sed 's/.*, \([0-9]*\) failed.*/\1/')
    s=$(echo "$line" | sed -n 's/.* \([0-9]*\) skipped.*/\1/p')
    skipped=$((skipped + ${s:-0}))
  elif line=$(grep -aE '^All tests passed \(.* in [0-9]+ test case' "$log" | tail -n 1) && [ -n "$line" ]; then
    p=$(echo "$line" | sed 's/.* in \([0-9]*\) test case.*/\1/')
  elif line=$(grep -aE '^test cases: ' "$log" | tail -n 1) && [ -n "$line" ]; then
    p=$(echo "$line" | sed -n 's/.*| *\([0-9]*\) passed.*/\1/p') f=$(echo "$line" | sed -n 's/.*| *\([0-9]*\) failed.*/\1/p')
    p=${p:-0} f=${f:-0}
  fi
  if [ "$status" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
  if [ "$status" -eq 0 ] && [ "$p" -eq 0 ]; then f=$((f + 1)); echo "$name: ran no test" >>"$log"; fi
  passed=$((passed + p)) failed=$((failed + f))
  printf '%-32s %5d passed %3d failed %6s s %6s CPU s\n' "$name" "$p" "$f" "$4" "$5"
  if [ "$f" -gt 0 ]; then
    failures+=("$name")
    # Without the programs' own messages, which hide the failed check.
    grep -avE '^[0-9]{4}-[0-9-]+T[0-9:.]+Z (DEBUG|INFO) ' "$log" | tail -n 60 | sed "s/^/    /"
  fi
}

# run_program NAME COMMAND…: runs one test program; its output, exit status and times are kept in the log folder.
TIMEFORMAT='%R %U %S'
run_program() {
  local name=$1
  shift
  # In the background an interrupt would be ignored.
  { time { env --default-signal=INT,QUIT timeout "${DET_TEST_TIMEOUT:-1500}" "$@" >"$logs/$name.log" 2>&1 </dev/null & wait $!; }; } 2>"$logs/$name.times"
  echo "$? $(awk '{ printf "%.0f %.0f", $1, $2 + $3 }' "$logs/$name.times")" >"$logs/$name.status"
}

# count_program NAME: counts a program that has ended.
count_program() {
  local status seconds cpu
  read -r status seconds cpu <"$logs/$1.status" || status=1 seconds='?' cpu='?'
  count "$1" "$logs/$1.log" "$status" "$seconds" "$cpu"
}

# suite_program NAME COMMAND…: runs one test program and counts it.
suite_program() {
  run_program "$@"
  count_program "$1"
}

# catch_suite SUITE PRESET: runs the test programs of a build, as many at a time as there are cores (at most 4),
# and counts them in the order of catch_programs.
catch_suite() {
  local suite=$1 preset=$2 program jobs
  local programs=()
  mapfile -t programs < <(catch_programs "$preset")
  rm -f "$logs/$suite"-*.status
  jobs=$(($(nproc) < 4 ? $(nproc) : 4))
  # A shell of its own: its jobs are these programs only.
  (
    for program in "${programs[@]}"; do
      while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
      run_program "$suite-$program" "build/$preset/tests/$program" &
    done
    wait
  ) &
  wait $!
  for program in "${programs[@]}"; do
    count_program "$suite-$program"
  done
}

# build PRESET TARGET…: configures and builds, or counts a failure and says why.
build() {
  local preset=$1 log=$logs/build-$1.log
  shift
  configure_and_build() {
    cmake --preset "$preset" -DDET_TESTS=ON && cmake --build "build/$preset" ${1:+--target} "$@" -- -k 0
  }
  if ! { time { configure_and_build "$@" >"$log" 2>&1 & wait $!; }; } 2>"$log.times"; then
    failed=$((failed + 1)) failures+=("build-$preset")
    echo "build of $preset failed:"
    grep -aE 'error|FAILED' "$log" | head -n 40 | sed 's/^/    /'
    return 1
  fi
  awk -v preset="$preset" '{ printf "built %s in %.0f s, %.0f CPU s\n", preset, $1, $2 + $3 }' "$log.times"
}

# catch_programs PRESET: the test programs of the build. The longest one comes first, so that no core waits for it alone
# at the end.
catch_programs() {
  local programs
  programs=$(find "build/$1/tests" -maxdepth 1 -type f -perm -u+x -printf '%f\n' 2>/dev/null | sort)
  grep -x sim_test <<<"$programs"
  grep -vx sim_test <<<"$programs"
}

begin=$SECONDS
deploy/deps.sh test || { echo "0 passed, 1 failed"; exit 1; }

if wants tidy; then
  suite_program tidy python3 tests/tidy.py
  suite_program guides_self_test python3 tests/harness/guides/guides_check.py --self-test
  suite_program guides python3 tests/harness/guides/guides_check.py
fi

if wants engines; then deploy/deps.sh engines || { echo "0 passed, 1 failed"; exit 1; }; fi
if wants unit || wants e2e || wants seeds || wants adversary || wants chaos || wants engines || wants browser; then
  build release
fi
# Engines and chaos mostly wait, at a fifth of two cores: each runs beside suites that compute.
if wants engines; then
  DET_TEST_TIMEOUT=$((long ? 14400 : 1500)) run_program engines python3 tests/engines/run.py build/release &
  engines=$!
fi
if wants unit; then
  catch_suite unit release
fi
# The rooms without I/O, and base, under sanitizers: quick to build, and where memory errors would hide.
if [ "${suites[*]}" = asan ]; then
  if build dev pure_tests; then
    catch_suite asan dev
  fi
elif wants asan; then
  # In the time that suites with real processes leave over: they wait for half of theirs. A session of its own has a
  # priority of its own, where the kernel groups processes by sessions.
  DET_TEST_TIMEOUT=3600 run_program asan setsid --wait nice -n 19 bash -c \
    '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec tests/run.sh "$@" asan' bash $([ "$long" -eq 0 ] || echo --long) &
  asan=$!
fi
if wants unit && [ "$long" -eq 1 ]; then
  # Each source alone: a missing include does not show in a unity build.
  build separate programs || true
  # Other releases of clang-tidy have other checks.
  if command -v clang-tidy-14 >/dev/null; then
    suite_program long-clang-tidy python3 tests/clang_tidy.py build/release
  fi
  suite_program long-examples python3 tests/long/examples.py build/release
  if build fuzz fuzz_yaml fuzz_archive fuzz_gateway fuzz_wire; then
    DET_TEST_TIMEOUT=3600 suite_program long-fuzz python3 tests/long/fuzz.py build/fuzz
  fi
fi
if wants e2e; then suite_program e2e python3 tests/e2e/run.py build/release --jobs 3; fi
if wants seeds; then DET_TEST_TIMEOUT=$((long ? 28800 : 1500)) suite_program seeds python3 tests/seeds/run.py build/release; fi
if wants engines; then
  wait "$engines"
  count_program engines
fi
if wants chaos; then
  seeds=1..3
  if [ "$long" -eq 1 ]; then seeds=1..20; fi
  run_program chaos python3 tests/chaos/chaos.py build/release --seeds "$seeds" &
  chaos=$!
fi
if wants adversary; then suite_program adversary python3 tests/adversary/run.py build/release --jobs 2; fi
if wants chaos; then
  wait "$chaos"
  count_program chaos
fi
if wants cuda; then
  # The last commit, in a root that is kept for the next run.
  DET_TEST_TIMEOUT=10800 suite_program cuda tests/distro.sh trixie "${DET_CUDA_ROOT:-$root/build/cuda-root}" cuda --all
fi

if wants torch; then
  DET_TEST_TIMEOUT=10800 suite_program torch tests/distro.sh sid "${DET_TORCH_ROOT:-$root/build/torch-root}" torch
fi
if wants browser; then
  run_program webui-pages node tests/webui/pages_test.mjs build/release &
  pages=$!
  suite_program webui-unit node tests/webui/unit_test.mjs build/release
  suite_program browser node tests/webui/browser_test.mjs build/release
  suite_program webui-live node tests/webui/live_test.mjs build/release
  wait "$pages"
  count_program webui-pages
fi
if [ -n "${asan:-}" ]; then
  wait "$asan"
  count_program asan
fi
# Alone, because it times frames.
if wants browser; then suite_program webui-scale node tests/webui/scale_test.mjs build/release; fi

[ "${#failures[@]}" -eq 0 ] || echo "failed: ${failures[*]}"
echo "took $((SECONDS - begin)) s, $skipped skipped; logs in build/test-logs"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
