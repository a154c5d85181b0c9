#!/usr/bin/env bash
# Compiles and links every source with CUDA in it against LibTorch for CUDA (`deploy/deps.sh --cuda test`), starts
# the programs without a GPU, and runs the tests of the training library. Ends with "N passed, N failed".
# tests/run.sh cuda runs this in a Debian 13 of its own.
set -uo pipefail
cd "$(dirname "$0")/../.."
build=$PWD/build/cuda
mkdir -p "$build/standins"
passed=0 failed=0
check() {
  local name=$1
  shift
  if "$@" >"$build/check.log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $name"
  else
    failed=$((failed + 1))
    echo "FAILED  $name"
    tail -n 30 "$build/check.log" | sed 's/^/    /'
  fi
}
end() { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]; exit; }
# says TEXT COMMAND...: the command succeeds and prints TEXT.
says() {
  local text=$1 out
  shift
  out=$("$@" 2>&1) || { echo "$out"; return 1; }
  echo "$out"
  grep -qF "$text" <<<"$out"
}

# cuDNN is not in Debian: its package downloads it. Without it, empty functions of its names take its place, which
# no test without a GPU calls.
cudnn_standin() {
  local libraries=/usr/lib/x86_64-linux-gnu
  nm -D --undefined-only "$libraries/libtorch_cuda.so" "$libraries"/libtorch_python.so* |
    sed -n 's/.* U \(cudnn[A-Za-z0-9_]*\).*/int \1(void) { return 1; }/p' | sort -u >"$build/standins/cudnn.c"
  echo 'libcudnn.so.9 { global: *; };' >"$build/standins/cudnn.map"
  cc -shared -fPIC -Wl,-soname,libcudnn.so.9 -Wl,--version-script="$build/standins/cudnn.map" -o "$build/standins/libcudnn.so.9" \
    "$build/standins/cudnn.c"
}
flags=
if ! ldconfig -p | grep 'libcudnn\.so\.9' >/dev/null; then
  cudnn_standin || { echo "no stand-in of cuDNN" >&2; exit 1; }
  export LD_LIBRARY_PATH=$build/standins${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  flags="-Wl,-rpath-link,$build/standins"
fi

check "a build for CUDA is configured" says ", CUDA " cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DDET_CLUSTER=OFF -DDET_WEBUI=OFF -DDET_TESTS=ON -DCMAKE_EXE_LINKER_FLAGS="$flags" -DCMAKE_SHARED_LINKER_FLAGS="$flags"
targets=(det-harness det-launch mnist_train cuda_test harness_ddp_test harness_system_test harness_optim_test)
[ "${1:-}" != --all ] || targets=(all)
check "libdet, its programs, an example and the tests are compiled and linked" ninja -C "$build" "${targets[@]}"
[ "$failed" -eq 0 ] || end
check "libdet uses streams of CUDA" sh -c "nm -DC '$build/lib/libdet.so' | grep 'c10::cuda::getStreamFromPool'"
check "det-harness names LibTorch and CUDA" says ", CUDA " "$build/bin/det-harness" --version
cat >"$build/short.yaml" <<'YAML'
hyperparameters: {learning_rate: 0.001, global_batch_size: 64, n_filters1: 4, n_filters2: 4, dropout1: 0.1, dropout2: 0.25}
searcher: {name: single, metric: accuracy, smaller_is_better: false, max_length: {batches: 3}}
entrypoint: model_def:MNistTrial
YAML
check "training without a GPU goes on, on the CPU, and says so" \
  says "(this build has CUDA, but finds no usable device; check nvidia-smi)" \
  env -C "$build" "$build/examples/mnist_train" short.yaml
for program in "$build"/tests/*_test; do
  # LibTorch for CUDA has loaded NCCL itself, so the stand-in, which is found by its name, is not used.
  cases=()
  [ "$(basename "$program")" != harness_ddp_test ] || cases=("overlap*,shared memory*")
  check "$(basename "$program")" timeout 600 "$program" "${cases[@]}"
done
end
