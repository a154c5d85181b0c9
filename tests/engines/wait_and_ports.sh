# Functions of the engine scripts; sourced.

# free_ports N: prints N different TCP ports that no process uses.
free_ports() {
  python3 - "$1" <<'PY'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for each in held:
    each.bind(("127.0.0.1", 0))
print(*[each.getsockname()[1] for each in held])
PY
}

# poll SECONDS COMMAND…: repeats the command until it succeeds; fails after that time.
poll() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || return 1
    read -r -t 0.05 <> <(:) || true
  done
}
