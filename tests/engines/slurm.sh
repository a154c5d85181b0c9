#!/usr/bin/env bash
# A real Slurm for tests: munged, slurmctld, slurmd (and slurmrestd) of Debian's packages on free ports, without
# systemd. Everything lives in DIR. GPUs are device nodes without hardware. Needs root: slurmd switches users.
#
#   slurm.sh start DIR [--nodes N] [--cpus N] [--gpus N] [--memory MIB] [--kill-wait SECONDS] [--rest]
#       Prints the environment of the clients as KEY=VALUE lines: SLURM_CONF, with --rest also DET_SLURMRESTD (its
#       unix socket), DET_SLURMRESTD_URL and DET_SLURMRESTD_VERSION (of the API). They are in DIR/env, too. Partitions: low (default) and high, which requeues jobs of low.
#   slurm.sh stop DIR
#       Cancels all jobs, ends every process of this Slurm and waits for them. Idempotent. DIR stays.
#   slurm.sh installed
#       Succeeds if the packages are there; `deploy/deps.sh engines` installs them.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin

fail() {
  echo "slurm.sh: $*" >&2
  exit 1
}

# count OPTION VALUE LEAST: prints VALUE if it is an integer from LEAST to 9999.
count() {
  [[ $2 =~ ^[0-9]{1,4}$ ]] && [ "$2" -ge "$3" ] || fail "$1: must be an integer from $3 to 9999, got \"$2\""
  echo "$2"
}

installed() {
  local program
  for program in munged slurmctld slurmd slurmrestd squeue; do
    command -v "$program" >/dev/null || return 1
  done
}

. "$(dirname "${BASH_SOURCE[0]}")/wait_and_ports.sh"

# write_configuration DIR NODES CPUS GPUS MEMORY KILL_WAIT: slurm.conf, gres.conf, cgroup.conf and the device nodes.
write_configuration() {
  local dir=$1 nodes=$2 cpus=$3 gpus=$4 memory=$5 kill_wait=$6 host ports i gres=
  host=$(hostname -s)
  read -r -a ports < <(free_ports $((nodes + 1)))
  : >"$dir/gres.conf"
  if [ "$gpus" -gt 0 ]; then
    gres="Gres=gpu:$gpus"
    # Slurm sets CUDA_VISIBLE_DEVICES only for device nodes. Major 1, minor 3 is /dev/null.
    for ((i = 0; i < gpus; i++)); do mknod "$dir/gpu$i" c 1 3; done
    echo "NodeName=n[1-$nodes] Name=gpu File=$dir/gpu[0-$((gpus - 1))]" >"$dir/gres.conf"
  fi
  # Slurm 22.05 has no value that disables cgroups; no plugin in slurm.conf uses them.
  printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n' >"$dir/cgroup.conf"
  cat >"$dir/slurm.conf" <<TEXT
ClusterName=dettest
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$dir/state/jwt.key
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/%n.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobCompType=jobcomp/filetxt
JobCompLoc=$dir/log/jobs
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=$kill_wait
MinJobAge=300
InactiveLimit=0
SlurmdTimeout=30
SchedulerParameters=sched_interval=1,bf_interval=2,batch_sched_delay=0
TEXT
  for ((i = 1; i <= nodes; i++)); do
    echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=${ports[i]} CPUs=$cpus RealMemory=$memory $gres" \
      "State=UNKNOWN" >>"$dir/slurm.conf"
  done
  cat >>"$dir/slurm.conf" <<TEXT
PartitionName=low Nodes=ALL Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes=ALL MaxTime=INFINITE State=UP PriorityTier=10
TEXT
}

nodes_idle() {
  [ "$(sinfo -h -N -p low -t idle -o %N | sort -u | wc -l)" -eq "$1" ]
}

# rest_version: the version of slurmrestd's API to use. Slurm 22.05 has a plugin for each; since 24.05 one has all.
rest_version() {
  case "$(slurmrestd -V | grep -oE '[0-9]+' | head -n 1)" in
    22 | 23) echo v0.0.38 ;;
    *) echo v0.0.42 ;;
  esac
}

# start_rest DIR PORT VERSION: slurmrestd on a unix socket and a port, as an unprivileged user because it refuses root.
# Callers need a JWT. The other OpenAPI plugins need slurmdbd.
start_rest() {
  local dir=$1 port=$2 plugin=openapi/slurmctld
  [ "$3" != v0.0.38 ] || plugin=openapi/v0.0.38
  mkdir -p "$dir/rest"
  chown nobody "$dir/rest"
  SLURM_JWT=daemon setpriv --reuid=nobody --regid=nogroup --clear-groups \
    slurmrestd -a rest_auth/jwt -s "$plugin" "unix:$dir/rest/socket" "127.0.0.1:$port" >"$dir/log/slurmrestd.log" 2>&1 </dev/null &
  echo $! >"$dir/slurmrestd.pid"
  poll 20 test -S "$dir/rest/socket" || fail "slurmrestd did not start; see $dir/log/slurmrestd.log"
}

start() {
  local dir nodes=2 cpus=2 gpus=2 memory=2000 kill_wait=5 rest= i
  [ $# -gt 0 ] || fail "start needs DIR"
  mkdir -p "$1"
  dir=$(cd "$1" && pwd)
  shift
  while [ $# -gt 0 ]; do
    case "$1" in
      --rest) rest=1; shift; continue ;;
      --nodes | --cpus | --gpus | --memory | --kill-wait) [ $# -gt 1 ] || fail "$1 needs a value" ;;
      *) fail "unknown option $1" ;;
    esac
    case "$1" in
      --nodes) nodes=$(count "$1" "$2" 1) ;;
      --cpus) cpus=$(count "$1" "$2" 1) ;;
      --gpus) gpus=$(count "$1" "$2" 0) ;;
      --memory) memory=$(count "$1" "$2" 1) ;;
      --kill-wait) kill_wait=$(count "$1" "$2" 0) ;;
    esac
    shift 2
  done
  [ "$(id -u)" -eq 0 ] || fail "needs root"
  installed || fail "Slurm is not installed; run deploy/deps.sh engines"
  [ ! -e "$dir/slurm.conf" ] || fail "$dir has a Slurm already; use another directory"
  mkdir -p "$dir"/{log,munge,state}
  for ((i = 1; i <= nodes; i++)); do mkdir -p "$dir/n$i"; done
  # Users of the jobs reach the socket of munge.
  chmod 0755 "$dir" "$dir/munge"
  head -c 128 /dev/urandom >"$dir/munge/key"
  head -c 32 /dev/urandom >"$dir/state/jwt.key"
  chmod 0400 "$dir/munge/key" "$dir/state/jwt.key"
  write_configuration "$dir" "$nodes" "$cpus" "$gpus" "$memory" "$kill_wait"
  echo "SLURM_CONF=$dir/slurm.conf" >"$dir/env"
  export SLURM_CONF=$dir/slurm.conf
  trap 'stop "$dir"; tail -n 5 "$dir"/log/*.log >&2 || true' ERR
  # --force: a directory above DIR may be closed to other users.
  munged --force -S "$dir/munge/socket" --key-file="$dir/munge/key" --pid-file="$dir/munge/pid" \
    --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" 2>"$dir/log/munged.out"
  slurmctld -c
  for ((i = 1; i <= nodes; i++)); do slurmd -N "n$i"; done
  poll 20 nodes_idle "$nodes" || { echo "slurm.sh: the nodes did not become idle; see $dir/log" >&2; false; }
  if [ -n "$rest" ]; then
    i=$(free_ports 1)
    start_rest "$dir" "$i" "$(rest_version)"
    printf 'DET_SLURMRESTD=%s\nDET_SLURMRESTD_URL=http://127.0.0.1:%s\nDET_SLURMRESTD_VERSION=%s\n' \
      "$dir/rest/socket" "$i" "$(rest_version)" >>"$dir/env"
  fi
  trap - ERR
  cat "$dir/env"
}

# processes DIR: ids of the processes with this Slurm in their environment: daemons, steps and jobs. The environment
# of this script and of its children does too, so these are left out.
processes() {
  local entry pid
  for entry in $(grep -lzsxF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ 2>/dev/null); do
    pid=${entry#/proc/}
    pid=${pid%/environ}
    # Clients (tests, shells) have the variable as well; only daemons and what slurmstepd started are ended.
    if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = slurmstepd ] || grep -qzs '^SLURM_JOB_ID=' "/proc/$pid/environ"; then
      echo "$pid"
    fi
  done
}

# A zombie counts as gone: the init process of a container may collect it late.
gone() { ! grep -qs '^State:[[:space:]]*[A-WYa-z]' "/proc/$1/status"; }
no_jobs() { [ -z "$(squeue -h)" ]; }

stop() {
  local dir file pid
  [ $# -eq 1 ] || fail "stop needs DIR"
  dir=$(cd "$1" 2>/dev/null && pwd) || return 0
  export SLURM_CONF=$dir/slurm.conf
  [ -e "$SLURM_CONF" ] || return 0
  if [ -s "$dir/slurmctld.pid" ] && ! gone "$(cat "$dir/slurmctld.pid")"; then
    timeout 10 scancel --signal=KILL --full --state=RUNNING 2>/dev/null || true
    timeout 10 scancel --user=root 2>/dev/null || true
    poll 15 no_jobs || true
  fi
  for file in "$dir"/slurmrestd.pid "$dir"/n*.pid "$dir"/slurmctld.pid "$dir"/munge/pid; do
    [ -s "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null || true
    poll 10 gone "$pid" || kill -KILL "$pid" 2>/dev/null || true
    rm -f "$file"
  done
  for pid in $(processes "$dir"); do
    kill -KILL "$pid" 2>/dev/null || true
  done
}

case "${1:-}" in
  start | stop) "$@" ;;
  installed) installed ;;
  *) echo "usage: slurm.sh start DIR [OPTIONS] | stop DIR | installed" >&2; exit 2 ;;
esac
