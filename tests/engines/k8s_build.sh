#!/usr/bin/env bash
# Builds the control plane of Kubernetes 1.20 from the source package of Debian 12, with Debian's Go.
# Usage: k8s_build.sh CACHE   About 25 CPU-minutes and 3 GB. Idempotent; continues after an interruption.
#        k8s_build.sh built CACHE
# Installs nothing: packages are unpacked below CACHE. Programs: CACHE/bin, with etcd and kubectl.
set -euo pipefail

programs=(kube-apiserver kube-scheduler kube-controller-manager)
packages=(golang-1.19-go golang-1.19-src etcd-server kubernetes-client golang-github-modern-go-reflect2-dev)

fail() { echo "k8s_build.sh: $*" >&2; exit 1; }

built() {
  local program
  for program in etcd kubectl "${programs[@]}"; do [ -x "$1/bin/$program" ] || return 1; done
}

# Unpacks the packages below CACHE/debian.
unpack_packages() {
  [ ! -e "$cache/debian/done" ] || return 0
  mkdir -p "$cache/packages"
  (cd "$cache/packages" && apt-get -q download "${packages[@]}")
  local package
  for package in "$cache"/packages/*.deb; do dpkg -x "$package" "$cache/debian"; done
  touch "$cache/debian/done"
}

# Downloads and unpacks the source. The machine's lists of packages need no entry for sources.
unpack_source() {
  [ ! -e "$tree/done" ] || return 0
  local apt=$cache/apt file
  mkdir -p "$apt/parts" "$apt/lists/partial" "$cache/source" "$tree"
  for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -e "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/parts/${file##*/}"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -e "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"$apt/parts/$(basename "$file" .list).list"
  done
  cat >"$apt/configuration" <<TEXT
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$apt/parts";
Dir::State::lists "$apt/lists";
Dir::Cache "$apt";
TEXT
  export APT_CONFIG=$apt/configuration
  apt-get -q update
  # The packages of later releases have the source of kubectl only.
  (cd "$cache/source" && apt-get -q source --download-only kubernetes)
  tar xzf "$cache"/source/kubernetes_*+really1.20.2.orig.tar.gz -C "$tree" --strip-components=1 ||
    fail "needs the source package of Kubernetes 1.20 (Debian 12)"
  # Version 1.0.1 of reflect2 crashes with Go 1.19 when it iterates over a map.
  rm "$tree"/vendor/github.com/modern-go/reflect2/*.go
  cp "$cache"/debian/usr/share/gocode/src/github.com/modern-go/reflect2/* "$tree/vendor/github.com/modern-go/reflect2/"
  touch "$tree/done"
}

# Generates the OpenAPI definitions, which the source package does not have.
generate_openapi() {
  local generated=pkg/generated/openapi/zz_generated.openapi.go folders
  [ ! -s "$generated" ] || return 0
  go build -p 1 -o "$cache/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
  folders=$(grep -rl --include='*.go' '+k8s:openapi-gen=' staging/src/k8s.io pkg cmd plugin |
    grep -v -e zz_generated -e code-generator -e sample-apiserver -e _test.go -e kube-openapi |
    xargs -n1 dirname | sort -u | sed 's#^staging/src/#vendor/#; s#^#k8s.io/kubernetes/#' | paste -sd,)
  "$cache/openapi-gen" --logtostderr -i "$folders" -p k8s.io/kubernetes/pkg/generated/openapi \
    -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt -r "$cache/openapi.report" -o "$cache/openapi"
  find "$cache/openapi" -name zz_generated.openapi.go -exec cp {} "$generated" \;
}

build() {
  cache=$(mkdir -p "$1" && cd "$1" && pwd)
  tree=$cache/gopath/src/k8s.io/kubernetes
  ! built "$cache" || return 0
  command -v apt-get >/dev/null || fail "needs the packages of Debian 12"
  unpack_packages
  unpack_source
  mkdir -p "$cache/bin"
  cp "$cache"/debian/usr/bin/{etcd,kubectl} "$cache/bin/"
  export GOROOT=$cache/debian/usr/lib/go-1.19 GOPATH=$cache/gopath GOCACHE=$cache/gocache
  export GO111MODULE=off GOPROXY=off GOFLAGS='' CGO_ENABLED=0 PATH=$cache/debian/usr/lib/go-1.19/bin:$PATH
  cd "$tree"
  generate_openapi
  local version=k8s.io/kubernetes/vendor/k8s.io/component-base/version program
  for program in "${programs[@]}"; do
    [ -x "$cache/bin/$program" ] || go build -p 1 -o "$cache/bin/$program" \
      -ldflags "-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20" \
      "k8s.io/kubernetes/cmd/$program"
    echo "built $program"
  done
}

case "${1:-}" in
  '' | -*) echo "usage: k8s_build.sh CACHE | built CACHE" >&2; exit 2 ;;
  built) built "${2:?needs CACHE}" ;;
  *) build "$1" ;;
esac
