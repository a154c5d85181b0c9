#!/usr/bin/env bash
# Runs run.sh --cpu on an emulated GPU machine: no network, LibTorch only inside Python's package as pip installs it,
# and none of the libraries that the harness needs. usage: tests/gpu/emulate.sh ROOT [run.sh options]
# ROOT is a Debian 13 with the packages of `deploy/deps.sh test` (tests/distro.sh makes one); it is not changed.
# Needs root, and build/gpu-packages (run.sh fetch).
set -euo pipefail
[ $# -ge 1 ] && [ -e "$1/usr/lib/python3/dist-packages/torch" ] || { sed -n 's/^# //p' "$0" >&2; exit 2; }
base=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
packages=$here/build/gpu-packages
ls "$packages"/*.deb >/dev/null || { echo "tests/gpu/emulate.sh: run tests/gpu/run.sh fetch first" >&2; exit 2; }
work=$here/build/gpu-emulation
root=$work/root
mkdir -p "$work"/{upper,scratch,root}
leave() { umount -R -l "$root" 2>/dev/null || true; }
trap leave EXIT
leave
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/scratch" "$root"
mount -t proc proc "$root/proc"
mount --rbind --make-rslave /dev "$root/dev"
# Loopback is up, as on any machine; nothing else can be reached.
inside() {
  unshare -n sh -c 'ip link set lo up && exec "$@"' sh chroot "$root" \
    env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

torch=$root/usr/lib/python3/dist-packages/torch
if [ ! -d "$torch/share/cmake" ]; then
  # Headers and CMake files move into the Python package; their packages go.
  mkdir -p "$work/include" "$work/cmake"
  for folder in ATen c10 caffe2 torch; do cp -aL "$root/usr/include/$folder" "$work/include/"; done
  cp -a "$root"/usr/lib/x86_64-linux-gnu/cmake/{Torch,Caffe2} "$work/cmake/"
  inside apt-get remove -y -q libssl-dev libcurl4-openssl-dev libboost-dev libspdlog-dev libfmt-dev nlohmann-json3-dev \
    libexpected-dev libyaml-cpp-dev libre2-dev catch2 libturbojpeg0-dev libstb-dev libisal-dev libgloo-dev libtorch-dev \
    zlib1g-dev >/dev/null
  rm -rf "$torch/include"
  mkdir -p "$torch/share"
  cp -a "$work/include" "$torch/include"
  sed -i 's|/\.\./\.\./\.\./\.\./"|/../../../"|' "$work/cmake/Torch/TorchConfig.cmake" "$work/cmake/Caffe2/Caffe2Config.cmake"
  sed -i 's|_IMPORT_PREFIX}/x86_64-linux-gnu/\(lib[a-z0-9_]*\.so\)[.0-9]*|_IMPORT_PREFIX}/lib/\1|g
    s|_IMPORT_PREFIX}/../include|_IMPORT_PREFIX}/include|' "$work"/cmake/Caffe2/Caffe2Targets*.cmake
  # PyTorch's own packages do not ask for protobuf.
  sed -i '/^# Protobuf/{n;s/.*/if(TRUE)/}' "$work/cmake/Caffe2/Caffe2Config.cmake"
  cp -a "$work/cmake" "$torch/share/cmake"
fi
mkdir -p "$root/work/build/gpu-packages"
git -C "$here" ls-files -z | tar -C "$here" --null -cf - -T - | tar -xf - -C "$root/work"
cp -a "$packages/." "$root/work/build/gpu-packages/"
inside /work/tests/gpu/run.sh --cpu "$@"
