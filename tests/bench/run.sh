#!/usr/bin/env bash
# Owns running the benchmarks: tests/bench/run.sh [NAME...]   (all without a name). Prints `name value unit bound ok|short`,
# a line a figure; exit code 1 when a figure is short. What is compared runs by turns in the same minutes.
#   trainer     det::Trainer beside the loop by hand on LibTorch and beside the same loop in Python
#   precision   a training step in bf16 beside fp32
#   loader      the MNIST loader beside a loop by hand and torch::data; image folders on one and two workers
#   ddp         two processes beside two that do not exchange; all-reduce over shared memory beside Gloo
#   checkpoint  what saving stops training for, beside torch::save; how fast it is durable, beside fio
#   searcher    a million trials: time, decision, memory; how soon a good point is found; tpe beside random
#   scheduler   an event in a pool of 100 slots beside one of 10,000 with 100,000 requests waiting, and a naive pass
#   search      1,000 trials of a second on 8 slots of a real cluster, beside the time they need
#   mnist_search  adaptive.yaml of the MNIST example beside random search, on real data (a quarter of an hour)
#   cli         `det experiment list` of 1,000 rows, `det experiment create` of an unchanged project, on a real master
#   latency     `det experiment create` to the first training step beside a cold start by hand, on real processes
set -euo pipefail
cd "$(dirname "$0")/../.."
names=("$@")
[ $# -gt 0 ] || names=(trainer precision loader ddp checkpoint searcher scheduler search mnist_search cli latency)
cmake --preset bench >&2
# Folders of JPEG files for the loader, where they are at hand.
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
    trainer|precision) targets=(bench_train_segments) command=(python3 tests/bench/segments.py build/bench "$name") ;;
    ddp) targets=(bench_train_segments bench_all_reduce) command=(python3 tests/bench/segments.py build/bench ddp) ;;
    loader) targets=(bench_loader) command=(build/bench/bench/bench_loader ${images:+"$images"}) ;;
    checkpoint) targets=(bench_checkpoint) command=(build/bench/bench/bench_checkpoint) ;;
    searcher) targets=(bench_searcher) command=(build/bench/bench/bench_searcher) ;;
    scheduler) targets=(bench_scheduler) command=(build/bench/bench/bench_scheduler) ;;
    search) targets=(programs search_program) command=(python3 tests/bench/search.py build/bench) ;;
    mnist_search) targets=(programs) command=(python3 tests/bench/mnist_search.py build/bench) ;;
    cli) targets=(det det-master) command=(python3 tests/bench/cli.py build/bench) ;;
    latency) targets=(programs) command=(python3 tests/bench/latency.py build/bench) ;;
    *) echo "no such benchmark: $name (there are: trainer, precision, loader, ddp, checkpoint, searcher, scheduler, search, mnist_search, cli, latency)" >&2; exit 2 ;;
  esac
  cmake --build build/bench --target "${targets[@]}" >&2
  while read -r line; do
    echo "$line"
    if [[ $line == *" short" ]]; then status=1; fi
  done < <("${command[@]}")
done
exit $status
