#!/bin/sh
# Creates data/mnist or data/cifar10, as the configuration requires, from a copy that is downloaded once per
# machine. Runs in the trial's folder before its entrypoint; without a cluster, run it by hand.
set -eu
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/determinant/shiftvit
mkdir -p "$cache" data

# publish NAME FOLDER: moves a complete download into the cache. The first of several concurrent downloads
# wins.
publish() { mv -T "$2" "$cache/$1" 2>/dev/null || rm -rf "$2"; }

mnist() {
  [ -d "$cache/mnist" ] || {
    folder=$(mktemp -d "$cache/partial.XXXXXX")
    for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
      curl -fsS --retry 3 "https://ossci-datasets.s3.amazonaws.com/mnist/$name-ubyte.gz" | gunzip >"$folder/$name-ubyte"
    done
    (cd "$folder" && sha256sum --quiet -c) <<'TEXT'
ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db  train-images-idx3-ubyte
65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5  train-labels-idx1-ubyte
0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7  t10k-images-idx3-ubyte
ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2  t10k-labels-idx1-ubyte
TEXT
    publish mnist "$folder"
  }
  ln -sfn "$cache/mnist" data/mnist
}

cifar10() {
  [ -d "$cache/cifar10" ] || {
    folder=$(mktemp -d "$cache/partial.XXXXXX")
    curl -fsS --retry 3 -o "$folder/all.tar.gz" https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
    echo "c32a1d4ab5d03f1284b67883e8d87530  $folder/all.tar.gz" | md5sum --quiet -c
    tar -xzf "$folder/all.tar.gz" -C "$folder" --strip-components=1
    rm "$folder/all.tar.gz"
    publish cifar10 "$folder"
  }
  ln -sfn "$cache/cifar10" data/cifar10
}

# Only the folders themselves: a path such as /shared/data/mnist needs no download.
wanted=${DET_EXPERIMENT_CONFIG:-$(printf '"%s"' "$@")}
for name in mnist cifar10; do
  case "$wanted" in *"\"data/$name\""*) "$name" ;; esac
done
