#!/bin/sh
# Fills /opt/kubevnfm while an image is built. Run from the folder that holds the members, in two calls, so that a
# changed source does not download the third-party packages again:
#   install.sh packages NAME    what deploy/base/locks/NAME.lock pins, each by its hash
#   install.sh members NAME     the workspace members that the same file names
set -eu

into=/opt/kubevnfm
lock=deploy/base/locks/$2.lock

case $1 in
packages)
    # Lines of members begin with "./", all others belong to a pinned package.
    grep -v '^\./' "$lock" >/tmp/pinned.txt
    python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
        --only-binary :all: --target "$into" -r /tmp/pinned.txt
    ;;
members)
    # Members are plain Python with files beside it: copying is all that their installation would do.
    grep '^\./' "$lock" | while read -r member; do
        cp -r "$member"/kubevnfm_* "$into"/
    done
    rm -rf "$into"/*.egg-info
    # The file system is read-only when the service runs, so this is the time to compile.
    python -m compileall -q -j 0 "$into" || true
    # The service's user reads what the builder owns, also if the files were cloned with a narrow umask.
    chmod -R a+rX "$into"
    ;;
*)
    echo "install.sh: packages or members expected, got $1" >&2
    exit 2
    ;;
esac
