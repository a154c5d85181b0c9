#!/bin/sh
# Stand-in of nvidia-cuda-mps-control. Started with -d it leaves a process as the daemon; otherwise it reads commands
# and appends them to "commands" in the log directory. With the variable FAKE_MPS_ERROR it fails.
set -eu
pid_file=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid
log=$CUDA_MPS_LOG_DIRECTORY/commands
if [ "${1:-}" = -d ]; then
  [ -z "${FAKE_MPS_ERROR:-}" ] || { echo "$FAKE_MPS_ERROR"; exit 1; }
  setsid tail -f /dev/null < /dev/null > /dev/null 2>&1 &
  echo $! > "$pid_file"
  echo "-d $CUDA_VISIBLE_DEVICES" >> "$log"
  exit
fi
pid=$(cat "$pid_file" 2> /dev/null) && kill -0 "$pid" || { echo "Cannot find MPS control daemon process"; exit 1; }
while read -r command; do
  echo "$command" >> "$log"
  [ "$command" != quit ] || { kill "$pid"; rm "$pid_file"; }
done
