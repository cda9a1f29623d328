#!/bin/bash
# Builds the four managers of Cluster API with the Go client, into the folder $1; quick when they are all there.
# They are the released programs, except for where their servers listen: on 127.0.0.1, because the API servers of the clusters
# in memory ask for no credentials, and on ports that the lab's machines do not use.
set -euo pipefail

VERSION=v1.14.2
target=${1:?"a folder expected"}
source=$target/source
module=sigs.k8s.io/cluster-api
export CGO_ENABLED=0 GOTOOLCHAIN=local GOWORK=off GOFLAGS="-mod=mod -trimpath -buildvcs=false"

say() { echo "cluster-api: $*" >&2; }

# $1: a module, $2: the folder that gets a copy of its source
copy() {
    local folder
    folder=$(cd "$source" && go mod download -json "$1@$VERSION" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p')
    [[ -n $folder ]] || { say "the module $1 $VERSION is not served"; return 1; }
    cp -r "$folder" "$2" && chmod -R u+w "$2"
}

# $1: a file, $2: an edit by sed, which must find something to change
edit() {
    cp "$1" "$1.before"
    sed -i "$2" "$1"
    ! cmp -s "$1" "$1.before" || { say "$1 is not as expected: $2 changes nothing"; return 1; }
}

# The modules of the repository require each other at v0.0.0, which only a main module can replace.
sources() {
    rm -rf "$target" && mkdir -p "$source" "$target/bin"
    printf 'module kubevnfm.invalid/cluster-api\n\ngo 1.26.0\n' >"$source/go.mod"
    copy $module "$source/core" && copy $module/api "$source/api" && copy $module/test "$source/test"
    printf 'require %s v0.0.0\n' $module $module/api $module/test >>"$source/go.mod"
    printf 'replace %s => %s\n' $module ./core $module/api ./api $module/test ./test >>"$source/go.mod"
    local file
    for file in core/{core,bootstrap/kubeadm,controlplane/kubeadm}/main.go test/infrastructure/docker/main.go; do
        edit "$source/$file" 's/^\(\t*\)Port: *webhookPort,$/\1Host: "127.0.0.1", Port: webhookPort,/'
    done
    file=$source/test/infrastructure/inmemory/pkg/server/mux.go
    edit "$file" 's/fmt\.Sprintf(":%d"/fmt.Sprintf("127.0.0.1:%d"/'
    edit "$file" 's/^\(\tDefaultDebugPort = \)19000$/\130999/'
    edit "$file" 's/^\(\tDefaultMinPort = \)20000$/\131000/'
    edit "$file" 's/^\(\tDefaultMaxPort = \)30000$/\132000/'
    echo $VERSION >"$target/version"
}

# $1: the name of the program, $2: its package
program() {
    [[ -x $target/bin/$1 ]] && return 0
    say "building $1 $VERSION (a few minutes)"
    (cd "$source" && nice go build -ldflags "-s -w -X $module/version.gitVersion=$VERSION" -o "$target/bin/$1.new" "$2")
    mv "$target/bin/$1.new" "$target/bin/$1"
}

command -v go >/dev/null || { say "no go compiler"; exit 1; }
[[ $(cat "$target/version" 2>/dev/null) == "$VERSION" ]] || sources
program core $module/core
program bootstrap $module/bootstrap/kubeadm
program control-plane $module/controlplane/kubeadm
program infrastructure $module/test/infrastructure/docker
