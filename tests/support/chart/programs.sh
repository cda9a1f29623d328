#!/bin/bash
# Builds the programs of the tests of the chart with Go, from its module proxy, into .tools/chart: Helm 3, Helm 4, kubeconform. Takes minutes
# the first time, seconds when Go has them in its cache; nothing if they are there.
set -euo pipefail
into=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/.tools/chart
mkdir -p "$into"

# $1: the name of the program; $2: the module; $3: its version; $4: the package
built() {
    [[ -x $into/$1 ]] && return 0
    command -v go >/dev/null || { echo "programs.sh: $1: Go expected in PATH, to build it" >&2; exit 1; }
    echo "programs.sh: building $1" >&2
    local work
    work=$(mktemp -d)
    (
        cd "$work"
        printf 'module example.invalid/chart\n\ngo 1.24.0\n\ntool %s\n\nrequire %s %s\n' "$4" "$2" "$3" >go.mod
        CGO_ENABLED=0 GOFLAGS=-mod=mod GOTOOLCHAIN=local GOWORK=off nice go build -trimpath -buildvcs=false -ldflags "-s -w" -o "$into/$1" "$4"
    )
    rm -rf "$work"
}

built helm helm.sh/helm/v3 v3.19.0 helm.sh/helm/v3/cmd/helm
built helm4 helm.sh/helm/v4 v4.3.1 helm.sh/helm/v4/cmd/helm
built kubeconform github.com/yannh/kubeconform v0.7.0 github.com/yannh/kubeconform/cmd/kubeconform
