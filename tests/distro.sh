#!/usr/bin/env bash
# Runs the README's commands in a clean Debian: `tests/distro.sh bookworm ROOT quickstart`. Prints the time of each.
# Needs root and debootstrap. What is tested is the last commit.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: tests/distro.sh SUITE ROOT STEP...
  SUITE  bookworm or trixie
  ROOT   directory of the Debian; made when absent, used again when there
  STEP   quickstart        deploy/quickstart.sh, build included
         packages DIR      deploy/quickstart.sh --from-packages with the .deb files of DIR
         faults            what can stop the first command: no network, no compiler, no disk, a killed build;
                           each is named. Before `quickstart`, which must then succeed.
         tests [SUITE...]  tests/run.sh; the last step
TEXT
}
[ $# -ge 3 ] || { usage >&2; exit 2; }
suite=$1 root=$2
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
# The mirror of this machine's own packages.
mirror=${DET_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' | grep -v security | sort -u | sed -n 1p)}

timed() {
  local begin=$SECONDS status=0
  "$@" || status=$?
  echo "== $(printf '%s ' "${@: -3}"): exit $status in $((SECONDS - begin)) s"
  return "$status"
}
# Node has authorities of its own; the system's are those of this machine.
inside() {
  chroot "$root" env -i HOME=/root NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
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
without_network() { unshare -n chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
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
  local log=$root/root/.local/share/determinant/quickstart/build.log script waited=0
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
leave() {
  inside /src/deploy/quickstart.sh --stop >/dev/null 2>&1 || true
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
rm -rf "$root/src"
git clone -q --depth 1 "file://$here" "$root/src"

while [ $# -gt 0 ]; do
  case "$1" in
    faults) timed faults ;;
    quickstart) timed inside /src/deploy/quickstart.sh ;;
    packages)
      rm -rf "$root/packages"
      cp -r "${2:?packages needs a directory}" "$root/packages"
      timed inside /src/deploy/quickstart.sh --from-packages /packages
      shift
      ;;
    tests) shift; timed inside /src/tests/run.sh "$@"; break ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
done
