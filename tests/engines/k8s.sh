#!/usr/bin/env bash
# A real Kubernetes control plane for tests: etcd, kube-apiserver, kube-scheduler and kube-controller-manager on
# free ports of this machine, with nodes that run pods as processes (k8s_kubelet.py). Everything lives in DIR.
#
#   k8s.sh start DIR CACHE [--nodes N] [--cpus N]
#       CACHE has the programs of k8s_build.sh. Prints DIR/kubeconfig, of an administrator. DIR/master.kubeconfig is of
#       the user "determinant" without any rights. Pods start without images and mounts.
#   k8s.sh restart DIR CACHE apiserver
#   k8s.sh stop DIR
#       Ends every process of this control plane and of its pods. Idempotent. DIR stays.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

fail() { echo "k8s.sh: $*" >&2; exit 1; }

. "$(dirname "${BASH_SOURCE[0]}")/wait_and_ports.sh"

# daemon NAME COMMAND…: starts a process with its log and pid file in DIR.
daemon() {
  local name=$1
  shift
  setsid "$@" >>"$dir/log/$name.log" 2>&1 </dev/null &
  echo $! >"$dir/$name.pid"
}

ready() { curl -fsS -m 2 --cacert "$dir/certs/apiserver.crt" -H "Authorization: Bearer $token" "$server/readyz"; }

start_apiserver() {
  daemon apiserver "$cache/bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$etcd_port" --secure-port="$port" \
    --bind-address=127.0.0.1 --advertise-address=127.0.0.1 --cert-dir="$dir/certs" \
    --service-account-issuer=https://det.test --service-account-signing-key-file="$dir/account.key" \
    --service-account-key-file="$dir/account.key" --api-audiences=det --token-auth-file="$dir/tokens.csv" \
    --authorization-mode=RBAC --anonymous-auth=false --service-cluster-ip-range=10.0.0.0/24 \
    --disable-admission-plugins=ServiceAccount --endpoint-reconciler-type=none
  poll 120 ready || fail "kube-apiserver did not start; see $dir/log/apiserver.log"
}

# write_kubeconfig FILE USER TOKEN
write_kubeconfig() {
  cat >"$1" <<TEXT
apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: "$server", certificate-authority: certs/apiserver.crt}}]
users: [{name: $2, user: {token: $3}}]
contexts: [{name: test, context: {cluster: test, user: $2}}]
current-context: test
TEXT
}

start() {
  local nodes=2 cpus=4 peer_port scheduler_port manager_port
  [ $# -ge 2 ] || fail "start needs DIR and CACHE"
  mkdir -p "$1"
  dir=$(cd "$1" && pwd) cache=$(cd "$2" && pwd)
  shift 2
  while [ $# -gt 1 ]; do
    case "$1" in
      --nodes) nodes=$2 ;;
      --cpus) cpus=$2 ;;
      *) fail "unknown option $1" ;;
    esac
    shift 2
  done
  "$here/k8s_build.sh" built "$cache" || fail "the programs are not built; run tests/engines/k8s_build.sh $cache"
  [ ! -e "$dir/kubeconfig" ] || fail "$dir has a control plane already; use another directory"
  mkdir -p "$dir/log" "$dir/certs"
  read -r port etcd_port peer_port scheduler_port manager_port < <(free_ports 5)
  server=https://127.0.0.1:$port
  token=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
  printf '%s,admin,admin,"system:masters"\nmaster-%s,determinant,determinant\n' "$token" "$token" >"$dir/tokens.csv"
  openssl genrsa -out "$dir/account.key" 2048 2>/dev/null
  printf 'port=%s etcd_port=%s token=%s server=%s\n' "$port" "$etcd_port" "$token" "$server" >"$dir/settings"
  write_kubeconfig "$dir/kubeconfig" admin "$token"
  write_kubeconfig "$dir/master.kubeconfig" determinant "master-$token"
  local etcd=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$peer_port
  daemon etcd "$cache/bin/etcd" --data-dir "$dir/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" --unsafe-no-fsync
  start_apiserver
  daemon scheduler "$cache/bin/kube-scheduler" --kubeconfig="$dir/kubeconfig" --leader-elect=false --port=0 \
    --secure-port="$scheduler_port" --cert-dir="$dir/certs/scheduler"
  daemon manager "$cache/bin/kube-controller-manager" --kubeconfig="$dir/kubeconfig" --leader-elect=false --port=0 \
    --secure-port="$manager_port" --cert-dir="$dir/certs/manager" \
    --service-account-private-key-file="$dir/account.key" \
    --controllers=job,namespace,garbagecollector,podgc,nodelifecycle,resourcequota,ttl-after-finished
  daemon kubelet python3 "$here/k8s_kubelet.py" "$dir" "$nodes" "$cpus"
  poll 60 grep -q ready "$dir/log/kubelet.log" || fail "the nodes did not start; see $dir/log/kubelet.log"
  echo "$dir/kubeconfig"
}

end() {
  local file=$dir/$1.pid pid
  [ -s "$file" ] || return 0
  pid=$(cat "$file")
  kill "$pid" 2>/dev/null || true
  # A zombie counts as gone: the init process of a container may collect it late.
  poll "${2:-10}" eval "! grep -qs '^State:[[:space:]]*[A-WYa-z]' /proc/$pid/status" || kill -KILL "$pid" 2>/dev/null || true
  rm -f "$file"
}

restart() {
  [ $# -eq 3 ] && [ "$3" = apiserver ] || fail "restart needs DIR CACHE apiserver"
  dir=$(cd "$1" && pwd) cache=$(cd "$2" && pwd)
  # shellcheck disable=SC1091,SC2046
  export $(cat "$dir/settings")
  end apiserver 70
  start_apiserver
}

stop() {
  local name
  [ $# -eq 1 ] || fail "stop needs DIR"
  dir=$(cd "$1" 2>/dev/null && pwd) || return 0
  # The kubelet ends its pods.
  for name in kubelet scheduler manager; do end "$name" 30; done
  if [ -s "$dir/apiserver.pid" ]; then kill -KILL "$(cat "$dir/apiserver.pid")" 2>/dev/null || true; fi
  for name in apiserver etcd; do end "$name"; done
}

case "${1:-}" in
  start | stop | restart) "$@" ;;
  *) echo "usage: k8s.sh start DIR CACHE [--nodes N] [--cpus N] | restart DIR CACHE apiserver | stop DIR" >&2; exit 2 ;;
esac
