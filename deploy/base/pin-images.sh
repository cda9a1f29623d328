#!/bin/bash
# Writes the digest of each public image into docker-compose.yml and the Dockerfiles (`name:tag@sha256:...`), so that every
# build and every start uses the same content. Run it again to take the images that the tags name now; commit the result.
# It needs Docker with buildx, and a registry that answers. Nothing is written unless every digest was found.
#   deploy/base/pin-images.sh [FOLDER]            pins
#   deploy/base/pin-images.sh --check [FOLDER]    names the images without a digest; exits with 1 if there are any
set -euo pipefail
is_check=''
if [[ ${1:-} == --check ]]; then
    is_check=yes
    shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

files=(docker-compose.yml docker-compose.lab.yml services/*/Dockerfile deploy/lab/Dockerfile)
digest='@sha256:[0-9a-f]{64}'
if [[ -n $is_check ]]; then
    # Not by grep, which fails if nothing is left: a failure here is one of reading the files.
    unpinned=$(sed -nE 's/^(FROM|[[:space:]]*image:)[[:space:]]+([^[:space:]]+).*/\2/p' "${files[@]}" |
        sed -E "\#^kubevnfm/|$digest\$#d" | sort -u | paste -sd ' ')
    [[ -z $unpinned ]] || echo "pin-images.sh: not pinned by a digest: $unpinned (make pin-images)" >&2
    [[ -z $unpinned ]]
    exit
fi
# Images named kubevnfm/... are built here.
mapfile -t images < <(sed -nE 's/^(FROM|[[:space:]]*image:)[[:space:]]+([^[:space:]@]+).*/\2/p' "${files[@]}" |
    grep -v '^kubevnfm/' | sort -u)

edits=()
for image in "${images[@]}"; do
    found=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$image")
    if [[ ! $found =~ ^sha256:[0-9a-f]{64}$ ]]; then
        echo "pin-images.sh: $image: a digest expected, docker printed: $found" >&2
        exit 1
    fi
    edits+=(-e "s|^(FROM\|[[:space:]]*image:)([[:space:]]+)${image//./\\.}($digest)?([[:space:]]\|\$)|\1\2$image@$found\4|")
    echo "$image@$found"
done
sed -i -E "${edits[@]}" "${files[@]}"
