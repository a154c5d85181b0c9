#!/bin/sh
# Runs in the trial's folder before its entrypoint. Builds the stage that the entrypoint names, if any. det's
# programs are on the PATH, where CMake finds its package.
set -e
for stage in 1_start 2_metrics 3_checkpoints 4_search 5_distributed; do
  case "$DET_EXPERIMENT_CONFIG" in
    *"build/$stage"*)
      # Two commands: "set -e" ignores a failure within "a && b".
      cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
      cmake --build build --target "$stage"
      ;;
  esac
done
