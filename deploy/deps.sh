#!/usr/bin/env bash
# Debian packages for building, running and testing.
# Usage: deploy/deps.sh build|test|torch|engines  Installs missing packages without prompting. Idempotent. torch: to
#                                          build and test the training library alone, without the web UI. engines:
#                                          Slurm, podman, and Go with what renders a Helm chart, for tests.
#        deploy/deps.sh --cuda [build|test] The same with LibTorch for CUDA, NCCL and the CUDA toolkit. Needs
#                                          Debian 13. Adds contrib and non-free to APT's sources. Downloads
#                                          cuDNN from NVIDIA under its licence; not with DET_CUDNN=none.
#        deploy/deps.sh files FILE.deb...  Installs these packages, with their dependencies, and what quickstart.sh and
#                                          trials need: jq, curl, Clang.
# Where LibTorch for CUDA is installed, it stays: `build` and `test` then act as with --cuda.
set -euo pipefail
. "$(dirname "$0")/progress.sh"

build_packages=(
  build-essential cmake ninja-build ccache clang mold pkg-config
  protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libprotoc-dev libgrpc++-dev libre2-dev
  libtorch-dev libgloo-dev libturbojpeg0-dev libstb-dev libopenblas0-openmp
  libyaml-cpp-dev nlohmann-json3-dev libspdlog-dev libfmt-dev libcli11-dev libexpected-dev
  libpq-dev postgresql zlib1g-dev libisal-dev libssl-dev libsodium-dev
  libseccomp-dev libssh-dev bubblewrap libarchive-dev libcurl4-openssl-dev libboost-dev util-linux procps curl ca-certificates jq
  file  # for cpack
)
torch_packages=(
  catch2 python3 python3-torch python3-torchvision python3-setuptools python3-botocore libsleef-dev
)
test_packages=(
  "${torch_packages[@]}" git openssh-client clang-format clang-tidy fio libbenchmark-dev chromium
)
engines_packages=(
  python3 munge slurmctld slurmd slurmrestd slurm-client slurm-wlm-basic-plugins slurm-wlm-jwt-plugin
  podman
  python3-yaml golang-go golang-github-masterminds-sprig-dev golang-github-ghodss-yaml-dev
)
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
# Sanitizers and libFuzzer of clang: Debian 12 has only versioned packages.
case "$codename" in
  bookworm) test_packages+=(libclang-rt-14-dev) ;;
  *)        test_packages+=(libclang-rt-dev) ;;
esac

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

cuda=0
if [ "${1:-}" = --cuda ]; then
  cuda=1
  shift
  case "${1:-build}" in
    build | test) set -- "${1:-build}" ;;
    *) echo "deploy/deps.sh: --cuda is for build and test, not for $1" >&2; exit 2 ;;
  esac
  case "$codename" in
    bookworm | bullseye)
      echo "deploy/deps.sh: --cuda needs Debian 13 or newer; Debian's LibTorch of this release ($codename) has no CUDA." >&2
      echo "Upgrade, or install the CUDA toolkit and a LibTorch for CUDA by hand and build with" >&2
      echo "cmake --preset release -DCMAKE_PREFIX_PATH=/path/to/libtorch" >&2
      exit 2
      ;;
  esac
elif installed libtorch-cuda-dev; then
  cuda=1
fi
if [ "$cuda" -eq 1 ]; then
  # Both kinds of LibTorch exclude each other.
  for kind in build_packages test_packages; do
    declare -n list=$kind
    for i in "${!list[@]}"; do
      case "${list[i]}" in
        libtorch-dev)  list[i]=libtorch-cuda-dev ;;
        libgloo-dev)   list[i]=libgloo-cuda-dev ;;
        python3-torch) list[i]=python3-torch-cuda ;;
      esac
    done
  done
  build_packages+=(libnccl-dev nvidia-cuda-toolkit)
fi

files=()
case "${1:-}" in
  build) wanted=("${build_packages[@]}") ;;
  test)  wanted=("${build_packages[@]}" "${test_packages[@]}") ;;
  torch) wanted=("${build_packages[@]}" "${torch_packages[@]}") ;;
  engines) wanted=("${engines_packages[@]}") ;;
  # Clang compiles trials with a precompiled header: 3 s instead of 20 s.
  files) shift; files=("$@"); wanted=(jq curl ca-certificates procps util-linux clang) ;;
  *) echo "usage: deploy/deps.sh build|test|torch|engines|--cuda [build|test]|files FILE.deb..." >&2; exit 2 ;;
esac

# Any Node is sufficient, and Debian's npm depends on hundreds of packages. Only a build needs Node.
node_major=$(node --version 2>/dev/null | sed 's/^v\([0-9]*\).*/\1/' || true)
if [ "${#files[@]}" -eq 0 ] && [[ $1 =~ ^(build|test)$ ]] && { [ "${node_major:-0}" -lt 18 ] || ! command -v npm >/dev/null; }; then
  wanted+=(nodejs npm)
fi

missing=(${files[@]+"${files[@]}"})
for package in "${wanted[@]}"; do
  installed "$package" || missing+=("$package")
done

as_root=()
# Debian's package nvidia-cudnn is an installer: it downloads cuDNN from NVIDIA once its licence is accepted.
check_cudnn() {
  if [ "$cuda" -eq 0 ] || ldconfig -p | grep 'libcudnn\.so\.9' >/dev/null; then return 0; fi
  echo "packages: cuDNN is missing, and LibTorch for CUDA does not start without libcudnn.so.9. To download it under" >&2
  echo "    NVIDIA's licence: ${as_root[*]:+${as_root[*]} }update-nvidia-cudnn -u" >&2
}
if [ "${#missing[@]}" -eq 0 ]; then
  echo "packages: all ${#wanted[@]} are installed"
  check_cudnn
  exit 0
fi

command -v apt-get >/dev/null || { echo "deploy/deps.sh: this is not Debian; install by hand: ${missing[*]}" >&2; exit 1; }
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

# add_components NAME...: adds components of the release to APT's sources, from the same mirror as `main`.
add_components() {
  local have component uri entry signed file=/etc/apt/sources.list.d/determinant-cuda.sources missing=()
  have=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI) $(SOURCESENTRY)' 'Identifier: Packages')
  for component in "$@"; do
    grep -q "^$codename $component " <<<"$have" || missing+=("$component")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  read -r uri entry < <(sed -n "s/^$codename main //p" <<<"$have") || {
    echo "deploy/deps.sh: APT has no source of $codename main; add ${missing[*]} to APT's sources by hand" >&2
    return 1
  }
  # Sources of one address must name the same key.
  signed=$(sed -n 's/.*[Ss]igned-[Bb]y[:=] *\([^] ]*\).*/\1/p' "${entry%:*}" | head -n 1)
  echo "packages: adds ${missing[*]} of $uri to APT's sources ($file)"
  printf '%s\n' "Types: deb" "URIs: $uri" "Suites: $codename" "Components: ${missing[*]}" \
    ${signed:+"Signed-By: $signed"} | "${as_root[@]}" tee "$file" >/dev/null
}
if [ "$cuda" -eq 1 ]; then
  add_components contrib non-free
  echo "packages: CUDA takes 2.6 GB of downloads and 7 GB of disk"
  case "${DET_CUDNN:-}" in
    "")
      echo "packages: nvidia-cudnn downloads cuDNN from NVIDIA; this accepts its licence. DET_CUDNN=none does not"
      ;;
    none) echo "nvidia-cudnn nvidia-cudnn/question select I Decline" | "${as_root[@]}" debconf-set-selections ;;
    *) echo "deploy/deps.sh: DET_CUDNN is none or unset, not $DET_CUDNN" >&2; exit 2 ;;
  esac
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
  # Packages that are files are reinstalled: they may have been rebuilt with the same version.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --reinstall \
    -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold "${missing[@]}"
}

echo "packages: installing ${#missing[@]} of $((${#files[@]} + ${#wanted[@]})), with what they depend on"
log=$(mktemp "${TMPDIR:-/tmp}/det-packages.XXXXXX")
if ! with_progress packages "$log" packages_done 60 install; then
  if [ "$cuda" -eq 1 ] && grep -q '^dpkg: error processing package nvidia-cudnn' "$log"; then
    echo "packages: Debian's nvidia-cudnn downloads cuDNN from developer.download.nvidia.com, which failed. Check the" >&2
    echo "    network and run this again, or run it with DET_CUDNN=none and install libcudnn.so.9 by hand." >&2
    exit 1
  fi
  echo "packages: not installed. Without a network, or without Debian's mirror, install by hand:" >&2
  echo "${missing[*]}" | fold -s -w 100 | sed 's/^/    /' >&2
  exit 1
fi
rm -f "$log"
check_cudnn
