#!/bin/sh
# Builds the program in the trial's directory before the entrypoint runs.
set -e
cmake -S . -B build
cmake --build build
