#!/usr/bin/env bash
# Runs a command with the Slurm of another Debian release: slurm_root.sh ROOT COMMAND…
# ROOT is a directory for debootstrap; a missing one is made (trixie, 500 MB, once). In COMMAND, the programs of Slurm run
# below ROOT, and agents of its jobs on this machine. tests/engines/slurm.py starts them with DET_SLURM_AGENT_PREFIX.
#   tests/engines/slurm_root.sh ~/.cache/det-trixie python3 tests/engines/run.py build/release OnSlurm
set -euo pipefail

suite=trixie
packages=munge,slurmctld,slurmd,slurm-client,slurm-wlm-basic-plugins
programs=(munged slurmctld slurmd squeue sbatch scancel sinfo scontrol srun)

fail() { echo "slurm_root.sh: $*" >&2; exit 1; }

[ $# -ge 2 ] || fail "usage: slurm_root.sh ROOT COMMAND…"
[ "$(id -u)" -eq 0 ] || fail "needs root"
if [ -z "${DET_SLURM_ROOT_INSIDE:-}" ]; then
  root=$(mkdir -p "$1" && cd "$1" && pwd)
  if [ ! -x "$root/usr/sbin/slurmctld" ]; then
    debootstrap --variant=minbase --include="$packages" "$suite" "$root" >"$root.log" 2>&1 || fail "debootstrap failed; see $root.log"
  fi
  shift
  # Agents leave the root through this process, because one in a chroot cannot create user namespaces for its tasks.
  tail -f /dev/null &
  outside=$!
  trap 'kill "$outside"' EXIT
  # The mounts are those of this command only.
  DET_SLURM_ROOT_INSIDE=$outside unshare --mount --propagation private "$0" "$root" "$@"
  exit
fi

root=$1
shift
case $root/ in /tmp/*) fail "ROOT must not be below /tmp" ;; esac
cp /etc/hosts "$root/etc/hosts"
for directory in /proc /sys /dev /tmp; do mount --rbind "$directory" "$root$directory"; done
mkdir -p "$root/run/det-programs"
wrappers=$root/run/det-programs
for program in "${programs[@]}"; do
  printf '#!/bin/sh\nexec chroot "%s" %s "$@"\n' "$root" "$program" >"$wrappers/$program"
  chmod +x "$wrappers/$program"
done
export DET_SLURM_AGENT_PREFIX="nsenter --target $DET_SLURM_ROOT_INSIDE --mount --"
unset DET_SLURM_ROOT_INSIDE
PATH=$wrappers:$PATH exec "$@"
