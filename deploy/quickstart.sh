#!/usr/bin/env bash
# Installs missing packages, builds a release, starts a local cluster (master with a private PostgreSQL, one
# agent), trains examples/mnist and prints the result. A second run starts in seconds.
set -euo pipefail
. "$(dirname "$0")/progress.sh"

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [--data DIR] [--port N] [--state DIR] [--no-train] [--from-packages DIR | --prefix DIR]
       deploy/quickstart.sh --stop [--state DIR]

  --data DIR   directory with the four MNIST files (IDX, .gz or not); else they are downloaded, and without a
               network the example draws digits of its own
  --port N     port of the master and the web UI (default: 8080, or the next free one)
  --state DIR  where database, logs and checkpoints live (default: ~/.local/share/determinant/quickstart)
  --no-train   only start the cluster
  --from-packages DIR  install the .deb packages in DIR (made by cpack) instead of building
  --prefix DIR         use the programs of an installation (DIR/bin) instead of building
  --stop       stop agent, master and database; what they stored stays
TEXT
}

root=$(cd "$(dirname "$0")/.." && pwd)
state="${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/determinant/quickstart"
stop="deploy/quickstart.sh --stop"
port="" data="" action=start train=1 packages="" prefix=""
while [ $# -gt 0 ]; do
  case "$1" in
    --data)
      [ -d "${2:?--data needs a directory}" ] || { echo "quickstart: --data: no directory $2" >&2; exit 1; }
      data=$(cd "$2" && pwd)
      shift
      ;;
    --port) port=${2:?--port needs a number}; shift ;;
    --state) state=${2:?--state needs a directory}; stop+=" --state $(printf %q "$state")"; shift ;;
    --no-train) train=0 ;;
    --from-packages) packages=$(cd "${2:?--from-packages needs a directory}" && pwd); prefix=/usr; shift ;;
    --prefix) prefix=$(cd "${2:?--prefix needs a directory}" && pwd); shift ;;
    --stop) action=stop ;;
    -h | --help) usage; exit 0 ;;
    *) echo "quickstart: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
built=$root/build/release
bin=${prefix:-$built}/bin
build_cpu_minutes=12  # CPU minutes of a full build, measured on 2 cores
build_mb=4096         # size of the build folder in MiB
say() { printf '\n\033[1m%s\033[0m\n' "== $*"; }

# running NAME: prints the daemon's pid if the process of the pid file is still that daemon.
running() {
  local pid
  pid=$(cat "$state/$1.pid" 2>/dev/null) || return 1
  # A zombie keeps its name until its parent reaps it, but has no executable.
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && [ -e "/proc/$pid/exe" ] && echo "$pid"
}

# alive NAME: whether the process that was just started exists, also before it has executed the daemon.
alive() { kill -0 "$(cat "$state/$1.pid")" 2>/dev/null; }

# stop NAME SECONDS: sends SIGTERM, and SIGKILL after SECONDS.
stop() {
  local pid waited=0
  pid=$(running "$1") || { rm -f "$state/$1.pid"; return 0; }
  kill -TERM "$pid" 2>/dev/null || true
  while running "$1" >/dev/null; do
    if [ "$waited" -ge "$(($2 * 10))" ]; then
      echo "$1 did not stop within $2 s; killing it"
      kill -KILL "$pid" 2>/dev/null || true
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  rm -f "$state/$1.pid"
  echo "stopped $1"
}

# start NAME LOG ARGS...: starts a daemon in its own session and stores its pid in a file.
start() {
  local name=$1
  shift
  # The child opens this file later: until then, the address of an earlier master must not be found in it.
  rm -f "$state/$name.out"
  setsid "$bin/$name" "$@" >"$state/$name.out" 2>>"$state/$name.log" </dev/null &
  echo $! >"$state/$name.pid"
}

master_url() { sed -n 's/^ready //p' "$state/det-master.out" 2>/dev/null | head -n 1; }

start_master() {
  # A second master on the same state would replace the pid of the first one.
  local end=$((SECONDS + 60))
  while running det-master >/dev/null; do
    if [ -n "$(master_url)" ] && curl -fs -m 5 "$(master_url)/health" >/dev/null; then
      echo "master: already running at $(master_url)"
      if [ -n "$port" ] && [ "$(master_url)" != "http://127.0.0.1:$port" ]; then
        echo "master: to move it to port $port, run $stop first" >&2
      fi
      return
    fi
    if [ "$SECONDS" -ge "$end" ]; then
      echo "master: runs as process $(running det-master), but has not answered for 60 s; read $state/det-master.log," >&2
      echo "master: then run $stop and start it again" >&2
      exit 1
    fi
    sleep 0.2
  done
  local try first=${port:-8080} last=${port:-8099}
  for ((try = first; try <= last; try++)); do
    start det-master --data-dir "$state/master" --listen "127.0.0.1:$try" --webui-dir "${prefix:-$built}/share/det/webui"
    until [ -n "$(master_url)" ]; do
      alive det-master || break
      sleep 0.1
    done
    if [ -n "$(master_url)" ]; then
      echo "master: $(master_url)"
      return
    fi
    if tail -n 3 "$state/det-master.log" | grep 'is taken by' >/dev/null; then
      echo "master: port $try is taken"
      continue
    fi
    echo "master: did not start; the end of $state/det-master.log:" >&2
    tail -n 15 "$state/det-master.log" >&2
    exit 1
  done
  echo "master: no free port from $first to $last; choose one with --port N" >&2
  exit 1
}

start_agent() {
  local pid
  if pid=$(running det-agent); then
    # Trials see only the directories that the agent was started with.
    if [ -z "$data" ] || tr '\0' '\n' <"/proc/$pid/cmdline" | grep -xF -- "$data" >/dev/null; then
      echo "agent: already running"
      return
    fi
    stop det-agent 100
  fi
  local address
  address=$(master_url)
  start det-agent --master "${address#http://}" --data-dir "$state/agent" \
    --join-token-file "$state/master/agent-join-token" --bind-mounts "$data"
  local waited=0
  until [ "$("$bin/det" -m "$(master_url)" agent list --json | jq '[.[] | select(.connected)] | length')" -ge 1 ]; do
    if ! alive det-agent || [ "$waited" -gt 300 ]; then
      echo "agent: did not connect; the end of $state/det-agent.log:" >&2
      tail -n 15 "$state/det-agent.log" >&2
      exit 1
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  echo "agent: connected, $("$bin/det" -m "$(master_url)" slot list --json | jq length) slot(s)"
}

# Progress in parts of 1000, from ninja's "[done/all] STEP". Code generation takes no time and comes first, so
# only compile and link steps count.
build_done() {
  awk -F'[][/ ]' '/^\[[0-9]+\/[0-9]+\]/ { done = $2; all = $3; if (/ (Building|Linking) /) built++ }
                  END { if (all) printf "%d", 1000 * built / (all - done + built) }' "$1"
}

configure_and_build() {
  # Builds only what a cluster needs; tests/run.sh builds the tests.
  (cd "$root" && cmake --preset release) || return
  # The build must end with this script, even when the script is killed: two builds must not write to one
  # folder.
  exec setpriv --pdeathsig TERM ninja -C "$built" programs
}

build() {
  "$root/deploy/deps.sh" build
  command -v c++ >/dev/null || {
    echo "build: no C++ compiler: c++ is not in PATH. Install it: apt-get install --reinstall g++" >&2
    exit 1
  }
  local free_mb usual=0
  mkdir -p "$root/build/release"
  free_mb=$(df -Pm "$root/build" | awk 'NR == 2 { print $4 }')
  if [ ! -x "$bin/det-master" ] && [ "$free_mb" -lt "$build_mb" ]; then
    echo "build: needs $build_mb MiB in $root/build; $free_mb MiB are free. Make room, or clone to another disk" >&2
    exit 1
  fi
  # The duration of a build of changes depends on the changes.
  [ -x "$bin/det-master" ] || usual=$((build_cpu_minutes * 60 / $(nproc)))
  with_progress build "$state/build.log" build_done "$usual" configure_and_build || {
    echo "build: the whole log is $state/build.log; run deploy/quickstart.sh again to go on from here" >&2
    exit 1
  }
}

# Reports a missing web UI and the reason: a build continues when npm cannot download its packages.
check_webui() {
  local webui=${prefix:-$built}/share/det/webui
  [ ! -e "$webui/index.html" ] || return 0
  echo "web UI: not in $webui; the cluster works without it" >&2
  [ -z "$prefix" ] || return 0
  grep -aE 'npm (ERR!|error)' "$state/build.log" | head -n 4 | cut -c1-106 | sed 's/^/    /' >&2 || true
  echo "web UI: run deploy/quickstart.sh again when npm's registry can be reached" >&2
}

# Installs det's own packages and their dependencies. No compiler runs afterwards except for trials.
install_packages() {
  local files=("$packages"/det-master_*.deb "$packages"/det-agent_*.deb "$packages"/det-cli_*.deb "$packages"/libdet-dev_*.deb)
  local file
  for file in "${files[@]}"; do
    [ -e "$file" ] || { echo "packages: $file is missing; create it with cpack (deploy/README.md)" >&2; exit 1; }
  done
  "$root/deploy/deps.sh" files "${files[@]}"
}

# computes_bf16: whether all slots are processors with units for bfloat16. A step of the example takes them half the
# time of fp32; other processors are slower in it.
computes_bf16() {
  grep -qwE 'avx512_bf16|amx_bf16' /proc/cpuinfo &&
    "$bin/det" -m "$(master_url)" slot list --json | jq -e 'all(.[]; .device.type == "TYPE_CPU")' >/dev/null
}

# Prints the steps of this run and their duration.
announce() {
  local cores minutes training=""
  cores=$(nproc)
  [ "$train" = 1 ] && training=" and trains MNIST (1 min)"
  minutes=$(((build_cpu_minutes + cores - 1) / cores))
  if [ -n "$packages" ]; then
    echo "Installs packages (1 min), starts a local cluster$training."
  elif [ -n "$prefix" ]; then
    echo "Starts a local cluster with the programs of $bin$training."
  elif [ -x "$bin/det-master" ]; then
    echo "Builds what has changed, starts a local cluster$training."
  else
    echo "Installs Debian packages (1 min), builds Determinant (about $minutes min on $cores cores, less with a warm"
    echo "compiler cache), starts a local cluster$training."
  fi
  echo "State and logs: $state"
}

result() {
  local trial=$1 described
  described=$("$bin/det" -m "$(master_url)" trial describe "$trial" --metrics --json)
  echo "$described" | jq -r '
    "state:       " + (.state | sub("STATE_"; "")),
    if .latestValidation == null then "validation:  none" else
    "validation:  accuracy \(.latestValidation.metrics.avgMetrics.accuracy * 10000 | round / 100) %, loss \(.latestValidation.metrics.avgMetrics.validation_loss * 10000 | round / 10000)" end'
  local uuid
  uuid=$(echo "$described" | jq -r '.latestCheckpointUuid // empty')
  [ -n "$uuid" ] && "$bin/det" -m "$(master_url)" checkpoint describe "$uuid" --json | jq -r '"checkpoint:  " + .storagePath'
  # Not grep -q: it ends at the first match, and `det` by SIGPIPE, which pipefail reports as "not found".
  if "$bin/det" -m "$(master_url)" trial logs "$trial" | grep 'drawn by the example' >/dev/null; then
    echo "data:        DIGITS DRAWN BY THE EXAMPLE, not MNIST: no --data, and no mirror could be reached"
  fi
}

if [ "$action" = stop ]; then
  # Its trials save a checkpoint first (stop_timeout).
  stop det-agent 100
  stop det-master 30
  exit 0
fi

if [ -n "$data" ]; then
  lacks=""
  for file in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
    [ -s "$data/$file" ] || [ -s "$data/$file.gz" ] || lacks+=", $file"
  done
  if [ -n "$lacks" ]; then
    echo "quickstart: --data: $data lacks ${lacks#, }, plain or .gz" >&2
    exit 1
  fi
fi
mkdir -p "$state" 2>/dev/null && [ -w "$state" ] || {
  echo "quickstart: cannot write to $state; choose another directory with --state DIR" >&2
  exit 1
}
# The login of the det command is stored in the home directory, or beside the state when that is not writable.
config=""
login="${XDG_CONFIG_HOME:-${HOME:-/root}/.config}/det"
if ! { mkdir -p "$login" 2>/dev/null && [ -w "$login" ]; }; then
  export XDG_CONFIG_HOME=$state/config
  config=" XDG_CONFIG_HOME=$(printf %q "$XDG_CONFIG_HOME")"
fi
exec 9>"$state/lock"
flock -n 9 || { echo "quickstart: another quickstart uses $state" >&2; exit 1; }
announce
if [ -n "$packages" ]; then
  say "installing packages"
  install_packages 9>&-
elif [ -n "$prefix" ]; then
  [ -x "$bin/det-master" ] || { echo "quickstart: $bin has no det-master" >&2; exit 1; }
else
  say "building (release)"
  build 9>&-
fi
check_webui
say "starting the cluster (state: $state)"
start_master 9>&-
"$bin/det" -m "$(master_url)" user login admin --password-file "$state/master/admin-password"
start_agent 9>&-
export DET_MASTER
DET_MASTER=$(master_url)
experiment="" status=0 settings=()
[ -z "$data" ] || settings+=("data.dir=$data")
if computes_bf16; then settings+=("optimizations.precision=bf16"); fi
options=() shown=""
for setting in "${settings[@]}"; do
  options+=(--config "$setting")
  shown+=" \\"$'\n'"    --config $(printf %q "$setting")"
done
if [ "$train" = 1 ]; then
  say "training examples/mnist (const.yaml)"
  [ "${#settings[@]}" -eq 0 ] || printf 'with %s\n' "${settings[@]}"
  (cd "$root/examples/mnist" && "$bin/det" experiment create const.yaml . "${options[@]}" -f) || status=$?
  experiment=$("$bin/det" experiment list --json | jq 'map(.id) | max')
  say "result"
  echo "experiment:  $experiment"
  result "$("$bin/det" experiment describe "$experiment" --json | jq '.trials[0].id')"
fi
address="web UI:     "
[ -e "${prefix:-$built}/share/det/webui/index.html" ] || address="master:     "
cat <<TEXT

$address $DET_MASTER
login:       admin, password in $state/master/admin-password
stop:        $stop

Next, for a trial of your own:
  export PATH=$(printf %q "$bin"):\$PATH DET_MASTER=$DET_MASTER$config
  cp -r $(printf %q "$root")/examples/mnist my-trial && cd my-trial    # edit model_def.cpp and const.yaml
  det experiment create const.yaml . -f$shown
TEXT
exit "$status"
