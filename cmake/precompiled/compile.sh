#!/bin/sh
# compile.sh COMMAND...: removes the output file (-o FILE) and runs COMMAND.
output=
for argument; do
  [ "$output" != -o ] || rm -f "$argument"
  output=$argument
done
exec "$@"
