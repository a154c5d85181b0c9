#!/usr/bin/env bash
# Owns the first five minutes: installs what is missing, builds a release, starts a local cluster (master with a
# private PostgreSQL, one agent), trains examples/mnist and says what came of it. Run again it starts in seconds.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [--data DIR] [--port N] [--state DIR] [--no-train]
       deploy/quickstart.sh --stop [--state DIR]

  --data DIR   directory with the four MNIST files (IDX, .gz or not); else they are downloaded, and without a
               network the example draws digits of its own
  --port N     port of the master and the web UI (default: 8080, or the next free one)
  --state DIR  where database, logs and checkpoints live (default: ~/.local/share/determinant/quickstart)
  --no-train   only start the cluster
  --stop       stop agent, master and database; what they stored stays
TEXT
}

root=$(cd "$(dirname "$0")/.." && pwd)
state="${XDG_DATA_HOME:-${HOME:-/root}/.local/share}/determinant/quickstart"
port="" data="" action=start train=1
while [ $# -gt 0 ]; do
  case "$1" in
    --data) data=$(cd "${2:?--data needs a directory}" && pwd); shift ;;
    --port) port=${2:?--port needs a number}; shift ;;
    --state) state=${2:?--state needs a directory}; shift ;;
    --no-train) train=0 ;;
    --stop) action=stop ;;
    -h | --help) usage; exit 0 ;;
    *) echo "quickstart: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
bin=$root/build/release/bin
say() { printf '\n\033[1m%s\033[0m\n' "== $*"; }

# running NAME: the pid of our daemon, if the process of the pid file is still that daemon.
running() {
  local pid
  pid=$(cat "$state/$1.pid" 2>/dev/null) || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && echo "$pid"
}

# stop NAME SECONDS: asks, waits, and in the end insists.
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

# start NAME LOG ARGS...: a daemon in a session of its own, its pid in a file.
start() {
  local name=$1
  shift
  setsid "$bin/$name" "$@" >"$state/$name.out" 2>>"$state/$name.log" </dev/null &
  echo $! >"$state/$name.pid"
}

master_url() { sed -n 's/^ready //p' "$state/det-master.out" 2>/dev/null | head -n 1; }

start_master() {
  if running det-master >/dev/null && [ -n "$(master_url)" ] && curl -fsS -m 5 "$(master_url)/health" >/dev/null; then
    echo "master: already running at $(master_url)"
    if [ -n "$port" ] && [ "$(master_url)" != "http://127.0.0.1:$port" ]; then
      echo "master: to move it to port $port, run deploy/quickstart.sh --stop first" >&2
    fi
    return
  fi
  local try first=${port:-8080} last=${port:-8099}
  for ((try = first; try <= last; try++)); do
    start det-master --data-dir "$state/master" --listen "127.0.0.1:$try" --webui-dir "$root/build/release/share/det/webui"
    until [ -n "$(master_url)" ]; do
      running det-master >/dev/null || break
      sleep 0.1
    done
    if [ -n "$(master_url)" ]; then
      echo "master: $(master_url)"
      return
    fi
    if tail -n 3 "$state/det-master.log" | grep -q 'is taken by'; then
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
  if running det-agent >/dev/null; then
    echo "agent: already running"
    return
  fi
  local address
  address=$(master_url)
  start det-agent --master "${address#http://}" --data-dir "$state/agent"
  local waited=0
  until [ "$("$bin/det" -m "$(master_url)" agent list --json | jq '[.[] | select(.connected)] | length')" -ge 1 ]; do
    if ! running det-agent >/dev/null || [ "$waited" -gt 300 ]; then
      echo "agent: did not connect; the end of $state/det-agent.log:" >&2
      tail -n 15 "$state/det-agent.log" >&2
      exit 1
    fi
    sleep 0.1
    waited=$((waited + 1))
  done
  echo "agent: connected, $("$bin/det" -m "$(master_url)" slot list --json | jq length) slot(s)"
}

build() {
  "$root/deploy/deps.sh" build
  (cd "$root" && cmake --preset release >"$state/configure.log" 2>&1) ||
    { tail -n 30 "$state/configure.log" >&2; exit 1; }
  # Only what a cluster needs: tests are built by tests/run.sh.
  cmake --build "$root/build/release" --target programs 2>&1 | tee "$state/build.log" |
    awk -v tty="$([ -t 1 ] && echo 1)" '
      /^\[[0-9]+\/[0-9]+\]/ { if (tty) printf "\r\033[K%s", substr($0, 1, 100); else if (++n % 25 == 0) print; fflush(); next }
      /ninja: no work/ { print "up to date"; next } { print }
      END { if (tty) print "" }'
}

result() {
  local trial=$1 described
  described=$("$bin/det" -m "$(master_url)" trial describe "$trial" --metrics --json)
  echo "$described" | jq -r '
    "state:       " + (.state | sub("STATE_"; "")),
    "validation:  accuracy \(.latestValidation.metrics.avgMetrics.accuracy * 10000 | round / 100) %, loss \(.latestValidation.metrics.avgMetrics.validation_loss * 10000 | round / 10000)"'
  local uuid
  uuid=$(echo "$described" | jq -r '.latestCheckpointUuid // empty')
  [ -n "$uuid" ] && "$bin/det" -m "$(master_url)" checkpoint describe "$uuid" --json | jq -r '"checkpoint:  " + .storagePath'
  if "$bin/det" -m "$(master_url)" trial logs "$trial" | grep -q 'drawn by the example'; then
    echo "data:        DIGITS DRAWN BY THE EXAMPLE, not MNIST: no data directory was given and no mirror could be reached"
  fi
}

if [ "$action" = stop ]; then
  stop det-agent 30
  stop det-master 30
  exit 0
fi

mkdir -p "$state"
exec 9>"$state/lock"
flock -n 9 || { echo "quickstart: another one is running on $state" >&2; exit 1; }
say "building (release)"
build
say "starting the cluster (state: $state)"
start_master 9>&-
"$bin/det" -m "$(master_url)" user login admin --password-file "$state/master/admin-password"
start_agent 9>&-
export DET_MASTER
DET_MASTER=$(master_url)
experiment="" status=0
if [ "$train" = 1 ]; then
  say "training examples/mnist (const.yaml)"
  options=()
  [ -n "$data" ] && options=(--config "data.dir=$data")
  (cd "$root/examples/mnist" && "$bin/det" experiment create const.yaml . "${options[@]}" -f) || status=$?
  experiment=$("$bin/det" experiment list --json | jq 'map(.id) | max')
  say "result"
  echo "experiment:  $experiment"
  result "$("$bin/det" experiment describe "$experiment" --json | jq '.trials[0].id')"
fi
cat <<TEXT

web UI:      $DET_MASTER   (user admin, password in $state/master/admin-password)
command:     export PATH=$bin:\$PATH DET_MASTER=$DET_MASTER; det experiment list
stop:        deploy/quickstart.sh --stop
TEXT
exit "$status"
