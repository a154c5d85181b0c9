#!/usr/bin/env bash
# Tests and figures of the training library on a machine with a GPU, PyTorch and nvcc, and without a network.
# Everything else that the build needs is carried there: Debian packages, fetched here.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: tests/gpu/run.sh fetch         downloads the packages into build/gpu-packages (30 MB). On Debian 12, with a
                                      network; packages of later releases need a newer C library.
       tests/gpu/run.sh [--cpu] [--quick] [--build DIR]
                                      builds, tests, measures; prints a table, writes DIR/result.json (build/gpu).
                                      --cpu: also without a GPU, to check this script on any machine.
                                      --quick: only the transports' tests, and the figures.
TEXT
}
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
packages=$PWD/build/gpu-packages

# Libraries that the harness needs beside LibTorch. Dependencies of the C library and the compiler stay out: these
# belong to the machine.
wanted=(
  catch2 libboost1.74-dev libcurl4-openssl-dev libexpected-dev libisal-dev libre2-dev libspdlog-dev libssl-dev libstb-dev
  libturbojpeg0-dev libyaml-cpp-dev nlohmann-json3-dev zlib1g-dev
)
of_the_machine='^(libc6|libc-|libcrypt|libgcc|libstdc|linux-libc|gcc-|lib(a|l|t|ub)san|libitm|libgomp|libatomic|libquadmath|libnsl|libtirpc|rpcsvc)'

fetch() {
  local codename names part
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  [ "$codename" = bookworm ] || { echo "tests/gpu/run.sh: fetch needs Debian 12; this is $codename" >&2; exit 2; }
  part=$packages.part
  rm -rf "$part"
  mkdir -p "$part/none/partial"
  # An empty list of installed packages yields every dependency.
  names=$(apt-get install --print-uris -y --no-install-recommends -o Dir::State::status=/dev/null \
    -o Dir::Cache::archives="$part/none" "${wanted[@]}" | sed -n "s/^'[^ ]* \([^_]*\)_.*/\1/p" | grep -vE "$of_the_machine")
  (cd "$part" && echo "$names" | xargs apt-get download -q)
  rm -rf "$part/none" "$packages"
  mv "$part" "$packages"
  echo "fetched $(ls "$packages" | wc -l) packages, $(du -sh "$packages" | cut -f1), into $packages"
}

# unpack: unpacks the packages into $root, with links inside of it.
unpack() {
  local file link
  rm -rf "$root"
  mkdir -p "$root"
  for file in "$packages"/*.deb; do dpkg-deb -x "$file" "$root"; done
  find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
  if [ -d "$root/lib" ]; then cp -an "$root/lib/." "$root/usr/lib/"; fi
  # Compilers search the folder of their architecture only below the system's.
  cp -an "$root/usr/include/x86_64-linux-gnu/." "$root/usr/include/"
}

action=run cpu=0 build=build/gpu targets=(all)
while [ $# -gt 0 ]; do
  case "$1" in
    fetch) action=fetch ;;
    --cpu) cpu=1 ;;
    --quick) targets=(bench_train_segments harness_ddp_test) ;;
    --build) build=${2:?--build needs a directory}; shift ;;
    -h | --help) usage; exit 0 ;;
    *) echo "tests/gpu/run.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
if [ "$action" = fetch ]; then fetch; exit 0; fi

refuse() { echo "tests/gpu/run.sh: $1" >&2; exit 2; }
python3 -c 'import torch' 2>/dev/null || refuse "python3 has no torch"
if [ "$cpu" -eq 0 ]; then
  python3 -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' ||
    refuse "torch sees no GPU; --cpu checks this script without one"
fi
for tool in cmake ninja c++ dpkg-deb; do
  command -v "$tool" >/dev/null || refuse "$tool is missing"
done
ls "$packages"/*.deb >/dev/null 2>&1 || refuse "no packages in $packages; run tests/gpu/run.sh fetch on Debian 12 and carry them"

mkdir -p "$build"
build=$(cd "$build" && pwd)
root=$build/packages
[ -e "$root/usr/include/catch2" ] || unpack
libraries=$root/usr/lib/x86_64-linux-gnu
begin=$SECONDS
{
  cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDET_CLUSTER=OFF -DDET_WEBUI=OFF -DDET_BENCH=ON \
    -DDET_TESTS=ON -DCMAKE_PREFIX_PATH="$root/usr" \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$libraries" -DCMAKE_SHARED_LINKER_FLAGS="-Wl,-rpath-link,$libraries"
  ninja -C "$build" "${targets[@]}"
} >"$build/build.log" 2>&1 || {
  grep -aE 'rror[: ]|FAILED' "$build/build.log" | head -n 30 >&2
  refuse "the build failed; the whole log is $build/build.log"
}
seconds=$((SECONDS - begin))
echo "built in $seconds s"
# The packages' libraries find their own dependencies there.
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec python3 "$here/measure.py" "$build" "$seconds"
