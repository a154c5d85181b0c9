#!/usr/bin/env bash
# Owns the one list of Debian packages: what a build needs, what a run needs, what the tests need.
# Usage: deploy/deps.sh build|test   Installs what is missing; asks nothing; does nothing when all is there.
set -euo pipefail

build_packages=(
  build-essential cmake ninja-build ccache mold pkg-config
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev libgrpc++-dev libre2-dev
  libtorch-dev libgloo-dev libturbojpeg0-dev libstb-dev libopenblas0-openmp libopenblas-openmp-dev
  libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libexpected-dev
  libpq-dev postgresql zlib1g-dev libisal-dev libssl-dev libsodium-dev
  libarchive-dev libcurl4-openssl-dev libboost-dev util-linux procps curl ca-certificates jq
)
test_packages=(catch2 python3-torch fio libbenchmark-dev clang-14 libclang-rt-14-dev chromium python3 python3-botocore)

case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  test)  wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  *) echo "usage: deploy/deps.sh build|test" >&2; exit 2 ;;
esac

# Debian's npm brings hundreds of packages; a Node that is there already, of any origin, is as good.
node_major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if [ "${node_major:-0}" -lt 18 ] || ! command -v npm >/dev/null; then wanted+=(nodejs npm); fi

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then echo "packages: all ${#wanted[@]} are installed"; exit 0; fi

command -v apt-get >/dev/null || { echo "deploy/deps.sh: this is not Debian; install by hand: ${missing[*]}" >&2; exit 1; }
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "deploy/deps.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi

# The postgresql package would create and start a cluster of its own; the master runs a private one.
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
  "${as_root[@]}" mkdir -p /etc/postgresql-common
  echo 'create_main_cluster = false' | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
fi

echo "packages: installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
  -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "${missing[@]}" \
  | awk '/^Setting up/ { n++; printf "\rpackages: %d set up", n; fflush() } END { print "" }'
