#!/bin/sh
# Runs in the trial's folder before its entrypoint: builds the stages there. det's programs are on the PATH, which is how
# CMake finds its package.
set -e
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
cmake --build build
