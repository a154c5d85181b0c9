#!/usr/bin/env bash
# Runs the benchmarks: tests/bench/run.sh [NAME...]   (all without a name). Exit code 1 if a figure is short.
# Prints `name value unit bound ok|short`, one figure a line. Compared programs alternate in the same minutes.
#   trainer       det::Trainer, a hand-written LibTorch loop, and the same loop in Python
#   precision     a training step in bf16 and in fp32
#   loader        the MNIST loader, a hand-written loop, torch::data; image folders with one and two workers
#   ddp           two processes with and without exchange; all-reduce over shared memory and Gloo
#   exact         a step of `reproducibility: exact` and of `fast`, on one process and on two
#   compiled      a compiled step of examples/compiled_step and the same functions in eager mode (PyTorch 2.6 or later)
#   checkpoint    stall of training and torch::save; rate to durability and fio
#   searcher      a million trials: time, decision, memory; time to a good point; tpe and random
#   scheduler     an event in a pool of 100 slots, one in a pool of 10,000 with 100,000 waiting requests, and a
#                 naive pass
#   core          an event with all effects in the whole core, on 100 slots and on 10,000 with 100,000 waiting
#                 trials; 100,000 trials from submission to end
#   ingest        a real master: submission to the agent's message; metric reports in unary calls and in
#                 streams, log lines; bare COPY into the same PostgreSQL
#   reads         a real master with 10,000 experiments and a million metric points: lists and details beside
#                 reports, the command's list, restarts
#   table         the table of 100,000 experiments: sorting, filtering, paging
#   search        1,000 trials of a second on 8 slots of a real cluster, and the ideal time
#   mnist_search  adaptive.yaml of the MNIST example and random search, on real data (a quarter of an hour)
#   mnist_ranks   the MNIST example's images a second on two slots and on one
#   cli           start of det, `det experiment list` of 1,000 rows, `det experiment create` of an unchanged project
#   latency       `det experiment create` to the first training step, and a cold start by hand
#   edit_loop     from an edit of a trial to its first training step; the compiler's CPU time
#   sandbox       the start of a task with its sandbox and without, in turn
#   web           the web UI in a real browser: first load and paint, long series, many curves, zoom, time from
#                 a report to its drawn point, page loads while eight trials run
set -euo pipefail
cd "$(dirname "$0")/../.."
all=(trainer precision loader ddp exact compiled checkpoint searcher scheduler core ingest reads table search mnist_search mnist_ranks latency edit_loop sandbox cli web)
names=("$@")
[ $# -gt 0 ] || names=("${all[@]}")
cmake --preset bench >&2
# Folders of JPEG files for the loader, if available.
images=
archive=../shared/data/cifar10-jpeg.tar.gz
if [ -e "$archive" ] && [[ " ${names[*]} " == *" loader "* ]]; then
  if [ ! -e build/bench/images ]; then
    rm -rf build/bench/images.new && mkdir -p build/bench/images.new
    tar -xzf "$archive" -C build/bench/images.new && mv build/bench/images.new build/bench/images
  fi
  images=$(dirname "$(dirname "$(find build/bench/images -name '*.jpg' -path '*train*' -print -quit)")")
fi
status=0
for name in "${names[@]}"; do
  case "$name" in
    trainer|precision|exact) targets=(bench_train_segments) command=(python3 tests/bench/segments.py build/bench "$name") ;;
    ddp) targets=(bench_train_segments bench_all_reduce) command=(python3 tests/bench/segments.py build/bench ddp) ;;
    compiled) targets=() command=(python3 tests/bench/compiled.py) ;;
    loader) targets=(bench_loader) command=(build/bench/bench/bench_loader ${images:+"$images"}) ;;
    checkpoint) targets=(bench_checkpoint) command=(build/bench/bench/bench_checkpoint) ;;
    searcher) targets=(bench_searcher) command=(build/bench/bench/bench_searcher) ;;
    scheduler) targets=(bench_scheduler) command=(build/bench/bench/bench_scheduler) ;;
    core) targets=(bench_core) command=(build/bench/bench/bench_core) ;;
    ingest|reads) targets=(programs "bench_$name") command=(python3 "tests/bench/$name.py" build/bench) ;;
    table) targets=(programs) command=(python3 tests/bench/table.py build/bench) ;;
    search) targets=(programs search_program) command=(python3 tests/bench/search.py build/bench) ;;
    mnist_search) targets=(programs) command=(python3 tests/bench/mnist_search.py build/bench) ;;
    mnist_ranks) targets=(mnist_train det-launch) command=(python3 tests/bench/mnist_ranks.py build/bench) ;;
    web) targets=(programs det_webui) command=(node tests/bench/web.mjs build/bench) ;;
    cli) targets=(det det-master) command=(python3 tests/bench/cli.py build/bench) ;;
    latency) targets=(programs) command=(python3 tests/bench/latency.py build/bench) ;;
    sandbox) targets=(det-supervisor) command=(python3 tests/bench/sandbox.py build/bench) ;;
    edit_loop) targets=(programs) command=(python3 tests/bench/edit_loop.py build/bench) ;;
    *) echo "no such benchmark: $name (there are: ${all[*]})" >&2; exit 2 ;;
  esac
  [ "${#targets[@]}" -eq 0 ] || cmake --build build/bench --target "${targets[@]}" >&2
  while read -r line; do
    echo "$line"
    if [[ $line == *" short" ]]; then status=1; fi
  done < <("${command[@]}")
done
exit $status
