#!/usr/bin/env bash
# Debian packages for building, running and testing.
# Usage: deploy/deps.sh build|test|engines Installs missing packages without prompting. Idempotent. engines:
#                                          Slurm, for tests/engines.
#        deploy/deps.sh files FILE.deb...  Installs these packages, with their dependencies.
set -euo pipefail
. "$(dirname "$0")/progress.sh"

build_packages=(
  build-essential cmake ninja-build ccache clang mold pkg-config
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev libgrpc++-dev libre2-dev
  libtorch-dev libgloo-dev libturbojpeg0-dev libstb-dev libopenblas0-openmp libopenblas-openmp-dev
  libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libexpected-dev
  libpq-dev postgresql zlib1g-dev libisal-dev libssl-dev libsodium-dev
  libseccomp-dev bubblewrap libarchive-dev libcurl4-openssl-dev libboost-dev util-linux procps curl ca-certificates jq
)
test_packages=(
  git catch2 clang-format python3-torch python3-torchvision fio libbenchmark-dev chromium python3
  python3-botocore
)
engines_packages=(
  python3 munge slurmctld slurmd slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-jwt-plugin
)
# Sanitizers and libFuzzer of clang: Debian 12 has only versioned packages.
case "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" in
  bookworm) test_packages+=(libclang-rt-14-dev) ;;
  *)        test_packages+=(libclang-rt-dev) ;;
esac

files=()
case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  test)  wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  engines) wanted=("${engines_packages[@]}") ;;
  files) shift; files=("$@"); wanted=(jq curl ca-certificates procps util-linux) ;;
  *) echo "usage: deploy/deps.sh build|test|engines|files FILE.deb..." >&2; exit 2 ;;
esac

# Any Node is sufficient, and Debian's npm depends on hundreds of packages. Only a build needs Node.
node_major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if [ "${#files[@]}" -eq 0 ] && [ "$1" != engines ] && { [ "${node_major:-0}" -lt 18 ] || ! command -v npm >/dev/null; }; then
  wanted+=(nodejs npm)
fi

# Reinstalls det's own packages: they may have been rebuilt with the same version.
missing=(${files[@]+--reinstall "${files[@]}"})
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then echo "packages: all ${#wanted[@]} are installed"; exit 0; fi

command -v apt-get >/dev/null || { echo "deploy/deps.sh: this is not Debian; install by hand: ${missing[*]}" >&2; exit 1; }
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "deploy/deps.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
  sudo -v  # prompts for the password before output goes to a log
fi

# The postgresql package would create and start a cluster of its own; the master runs a private one.
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
  "${as_root[@]}" mkdir -p /etc/postgresql-common
  echo 'create_main_cluster = false' | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
fi

# Progress from apt's output: steps of download, unpack and setup, out of three per package.
packages_done() {
  awk '/ newly installed,/ { for (i = 1; i < NF; i++) if ($(i + 1) == "newly" || $(i + 1) == "upgraded," || $(i + 1) == "reinstalled,") all += $i }
       /^(Get:|Unpacking |Setting up )/ { n++ } END { if (all) printf "%d", n < 3 * all ? 1000 * n / (3 * all) : 999 }' "$1"
}
install() {
  # Finishes an interrupted installation first; otherwise apt refuses to run.
  "${as_root[@]}" dpkg --configure -a || return
  "${as_root[@]}" apt-get update -qq || return
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
    -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "${missing[@]}"
}

echo "packages: installing ${#missing[@]} of ${#wanted[@]}, with what they depend on"
log=$(mktemp "${TMPDIR:-/tmp}/det-packages.XXXXXX")
if ! with_progress packages "$log" packages_done install; then
  echo "packages: not installed. Without a network, or without Debian's mirror, install by hand:" >&2
  echo "${missing[*]}" | fold -s -w 100 | sed 's/^/    /' >&2
  exit 1
fi
rm -f "$log"
