#!/usr/bin/env bash
# Runs the README's commands in a clean Debian: `tests/distro.sh bookworm ROOT quickstart`. Prints the time and the CPU time of each.
# Needs root and debootstrap. What is tested is the last commit.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: tests/distro.sh SUITE ROOT STEP...
  SUITE  bookworm, trixie, or sid (Debian unstable)
  ROOT   directory of the Debian; made when absent, used again when there
  STEP   quickstart        deploy/quickstart.sh, build included
         packages          makes the .deb files of the build of `quickstart`, then deploy/quickstart.sh --from-packages
         from-packages DIR deploy/quickstart.sh --from-packages with the .deb files in DIR, as of an earlier ROOT/packages.
                           In a new ROOT this is the whole way of a user without a compiler cache or Debian packages.
         faults            what can stop the first command: no network, no compiler, no disk, a killed build;
                           each is named. Before `quickstart`, which must then succeed.
         services          the units of these packages under a systemd of their own: MNIST, an upgrade, a removal
         cuda [--all]      tests/cuda/run.sh with LibTorch for CUDA, which takes 7 GB of ROOT; only trixie; the last
                           step. Not in a ROOT of other steps: both kinds of LibTorch exclude each other.
         torch             tests/torch/run.sh: the training library with the LibTorch of this Debian; the last step
         tests [SUITE...]  tests/run.sh; the last step
TEXT
}
[ $# -ge 3 ] || { usage >&2; exit 2; }
suite=$1 root=$2
shift 2
command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)
# The mirror of this machine's own packages.
mirror=${DET_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep -v security | sort -u | sed -n 1p)}

# cpu_seconds: what the children of this script have used. Daemons that are left running are not in it.
cpu_seconds() { echo $((($(awk '{ print $16 + $17 }' "/proc/$$/stat")) / $(getconf CLK_TCK))); }
timed() {
  local begin=$SECONDS cpu status=0
  cpu=$(cpu_seconds)
  "$@" || status=$?
  echo "== $(printf '%s ' "${@: -3}"): exit $status in $((SECONDS - begin)) s, $(($(cpu_seconds) - cpu)) s of CPU"
  return "$status"
}
home=/root
# as_root_of OPTION COMMAND...: runs it in a mount namespace whose root is $root, not in a chroot: the kernel refuses
# user namespaces, and so the sandbox, to processes in a chroot. OPTION is one more of unshare.
as_root_of() {
  local option=$1
  shift
  unshare --mount --propagation private $option bash -c \
    'cd "$1" && pivot_root . mnt && umount -l /mnt && cd / && shift && exec "$@"' bash "$root" "$@"
}
# Node has authorities of its own; the system's are those of this machine.
inside() {
  as_root_of '' env -i HOME=$home NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
# refused TEXT COMMAND...: the command fails and says TEXT.
refused() {
  local text=$1 out
  shift
  if out=$("$@" 2>&1); then echo "FAILED: succeeded, but \"$text\" was expected"; return 1; fi
  if ! grep -qF "$text" <<<"$out"; then echo "FAILED: \"$text\" is missing in:"; echo "$out"; return 1; fi
  echo "named: $(grep -F "$text" <<<"$out" | head -n 1)"
}
without_network() { as_root_of --net env -i HOME=$home PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
faults() {
  refused "Without a network" without_network /src/deploy/quickstart.sh
  inside /src/deploy/deps.sh build
  mv "$root/usr/bin/c++" "$root/usr/bin/c++.away"
  refused "no C++ compiler" inside /src/deploy/quickstart.sh
  mv "$root/usr/bin/c++.away" "$root/usr/bin/c++"
  mkdir -p "$root/src/build"
  mount -t tmpfs -o size=256m none "$root/src/build"
  refused "MiB are free. Make room" inside /src/deploy/quickstart.sh
  umount "$root/src/build"
  killed_build
}
# The first build ends in the middle, as when the machine is short of memory.
killed_build() {
  local log=$root$home/.local/share/determinant/quickstart/build.log script waited=0
  rm -f "$log"
  inside /src/deploy/quickstart.sh >/dev/null 2>&1 &
  script=$!
  until [ -e "$log" ] && [ "$(grep -c ' Building ' "$log")" -ge 20 ]; do
    kill -0 "$script" || { echo "FAILED: no build to kill"; return 1; }
    sleep 1
  done
  pkill -KILL -f '^bash /src/deploy/quickstart.sh' || true
  wait "$script" || true
  while pgrep -f 'ninja -C /src/build/release' >/dev/null; do
    [ "$waited" -lt 30 ] || { echo "FAILED: the build outlives its script"; return 1; }
    waited=$((waited + 1))
    sleep 1
  done
  echo "killed: the build, after $(grep -c ' Building ' "$log") files; its compilers ended within $waited s"
}
# Compiling a room without its precompiled header succeeds, at three times the cost. GCC refuses a header that was
# compiled with other flags.
check_headers() {
  local log=$root$home/.local/share/determinant/quickstart/build.log
  if grep -m 1 'Winvalid-pch' "$log"; then echo "FAILED: a precompiled header is not used ($log)"; return 1; fi
}
make_packages() {
  inside bash -c 'cd /src && cmake --build build/release --target programs && cpack --config build/release/CPackConfig.cmake' \
    >"$root/var/log/det-packages.log" 2>&1 || { tail -n 20 "$root/var/log/det-packages.log"; return 1; }
  rm -rf "$root/packages"
  mv "$root/src/build/release/packages" "$root/packages"
}
# Starts systemd as process 1 of its own namespaces with $root as its root. Prints its process id.
start_systemd() {
  local hierarchy
  hierarchy=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET) || { echo "no cgroup v2" >&2; return 1; }
  mkdir -p "$hierarchy/det-distro"
  (
    echo "$BASHPID" >"$hierarchy/det-distro/cgroup.procs"
    exec unshare --pid --mount --uts --ipc --cgroup --fork --kill-child --mount-proc=/proc bash -c '
      mount --make-rprivate / && cd "$1"
      mount -t tmpfs tmpfs run
      mount -t cgroup2 cgroup sys/fs/cgroup
      mount -t proc proc proc
      pivot_root . mnt && umount -l /mnt
      exec env -i container=det PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system' x "$root"
  ) >"$root/var/log/det-systemd.log" 2>&1 &
  local waited=0
  until pgrep -n -f '^/lib/systemd/systemd --system'; do
    [ "$((waited += 1))" -lt 30 ] || { echo "systemd does not start: $root/var/log/det-systemd.log" >&2; return 1; }
    sleep 1
  done
}
services() {
  [ -d "$root/packages" ] || { echo "FAILED: no packages; name the step packages before services"; return 1; }
  # Its master has the port of the service.
  inside /src/deploy/quickstart.sh --stop >/dev/null 2>&1 || true
  inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    systemd systemd-sysv dbus procps jq >/dev/null
  inside env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --reinstall --no-install-recommends \
    $(cd "$root" && ls packages/*.deb | sed 's|^|/|') >/dev/null
  local pid
  pid=$(start_systemd)
  cat >"$root/services.sh" <<'SCRIPT'
set -euo pipefail
# eventually COMMAND: repeats it for a minute.
eventually() {
  local end=$((SECONDS + 60))
  until "$@" 2>/dev/null; do
    [ "$SECONDS" -lt "$end" ] || { echo "FAILED: $*"; journalctl -u det-master -u det-agent --no-pager | tail -n 20; exit 1; }
    sleep 0.5
  done
}
# Without modules of the kernel the state is "degraded", and the command fails.
booted() { [[ $(systemctl is-system-running) =~ running|degraded ]]; }
eventually booted
systemctl start det-master det-agent
systemctl is-active det-master det-agent
ps -o user:20=,comm= -C det-master,det-agent | sort
export DET_MASTER=http://127.0.0.1:8080
eventually det user login admin --password-file /var/lib/determinant/admin-password
cd /src/examples/mnist
det experiment create const.yaml . -f >/tmp/mnist.log || { tail -n 5 /tmp/mnist.log; exit 1; }
det trial describe "$(det experiment describe 1 --json | jq '.trials[0].id')" --json | jq -r '.state'
# An upgrade by apt keeps data and configuration; the services go on with the new programs.
apt-get install -y -q --reinstall --no-install-recommends /packages/*.deb >/dev/null 2>&1
systemctl restart det-master det-agent
listed() { det experiment list --json >/tmp/list.json; }
eventually listed
jq -r '"experiments after the upgrade: \(length)"' /tmp/list.json
systemctl stop det-agent det-master
! pgrep -u determinant -l || { echo "FAILED: processes outlive the services"; exit 1; }
apt-get remove -y -q det-master det-agent >/dev/null 2>&1
[ -e /var/lib/determinant/admin-password ] && echo "removed; the data stays"
SCRIPT
  nsenter -t "$pid" -m -p -u -i -C --root --wd env -i HOME=$home PATH=/usr/sbin:/usr/bin:/sbin:/bin bash /services.sh
}
leave() {
  inside /src/deploy/quickstart.sh --stop >/dev/null 2>&1 || true
  pkill -KILL -f '^/lib/systemd/systemd --system' || true
  umount -R -l "$root" 2>/dev/null || true
}

[ -e "$root/etc/debian_version" ] || timed debootstrap --variant=minbase "$suite" "$root" "$mirror" >/dev/null
cp /etc/resolv.conf "$root/etc/resolv.conf"
# The mirror and the proxy that this machine uses.
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/"
mkdir -p "$root/usr/local/share/ca-certificates"
cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/" 2>/dev/null || true
[ ! -x "$root/usr/sbin/update-ca-certificates" ] || chroot "$root" update-ca-certificates >/dev/null
trap leave EXIT
# A mount point, as the root of a machine is: the agent mounts below it.
mount --bind "$root" "$root"
mount --make-private "$root"
mount -t proc proc "$root/proc"
mount --rbind --make-rslave /dev "$root/dev"
mount --rbind --make-rslave /sys "$root/sys"
# Test data, where there is some.
if [ -d "$here/../shared" ]; then
  mkdir -p "$root/shared"
  mount --bind -o ro "$here/../shared" "$root/shared"
fi
rm -rf "$root/src"
git clone -q --depth 1 "file://$here" "$root/src"

while [ $# -gt 0 ]; do
  case "$1" in
    faults) timed faults ;;
    quickstart) timed inside /src/deploy/quickstart.sh; check_headers ;;
    packages)
      timed make_packages
      timed inside /src/deploy/quickstart.sh --from-packages /packages
      ;;
    from-packages)
      shift
      rm -rf "$root/packages"
      cp -r "${1:?from-packages needs a directory}" "$root/packages"
      timed inside /src/deploy/quickstart.sh --from-packages /packages
      ;;
    services) timed services ;;
    cuda)
      shift
      # Without a GPU nothing calls cuDNN; the suite has a stand-in.
      timed inside env DET_CUDNN=none /src/deploy/deps.sh --cuda test
      timed inside /src/tests/cuda/run.sh "$@"
      break
      ;;
    torch)
      timed inside /src/deploy/deps.sh torch
      timed inside /src/tests/torch/run.sh
      break
      ;;
    tests) shift; timed inside /src/tests/run.sh "$@"; break ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
