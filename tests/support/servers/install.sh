#!/bin/bash
# Gets the real servers and programs that tests run against; quick when they are all there. Says what it could not get, and fails
# on that when CI=true: the tests of a server must not be skipped there without anybody noticing. With `chromium` it gets the
# browser of the tests of the web page, which no other test needs.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
missing=()

say() { echo "servers: $*" >&2; }

# mongo-java-server speaks MongoDB's protocol. It is a library: its jars come by their Maven coordinates, and its start program
# is compiled here.
mongodb() {
    local target=$here/.tools/servers/mongodb own=$here/tests/support/servers/mongodb
    cmp -s "$own/SHA256SUMS" "$target/SHA256SUMS" && [[ $target/StandIn.class -nt $own/StandIn.java ]] && return 0
    debian default-jre-headless /usr/bin/java || return 1
    debian ivy /usr/share/java/ivy.jar || return 1
    say "fetching mongo-java-server"
    local work jars
    work=$(mktemp -d) || return 1
    java -jar /usr/share/java/ivy.jar -error -ivy "$own/ivy.xml" -cache "$work/cache" \
        -retrieve "$work/[conf]/[artifact]-[revision].[ext]" >"$work/log" 2>&1 || tail -5 "$work/log" >&2
    jars=$(printf '%s:' "$work"/server/*.jar)
    (cd "$work" && sha256sum --quiet --check "$own/SHA256SUMS" >&2) &&
        java -jar "$work"/compiler/ecj-*.jar -17 -cp "$jars" -d "$work/server" "$own/StandIn.java" &&
        cp "$own/SHA256SUMS" "$work/server/" &&
        rm -rf "$target" && mkdir -p "$(dirname "$target")" && mv "$work/server" "$target"
    local result=$?
    rm -rf "$work"
    return $result
}

# $1: the Debian package; $2: a file by which it is known to be there.
debian() {
    [[ -e $2 ]] && return 0
    if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
        say "$1: only root can install it, with apt-get"
        return 1
    fi
    say "installing $1"
    # A policy of 101 keeps Debian from starting the server, on its public port, as soon as it is installed.
    local policy=/usr/sbin/policy-rc.d made=
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy && made=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null 2>&1; }
    local result=$?
    [[ -n $made ]] && rm -f $policy
    return $result
}

if [[ ${1:-} == chromium ]]; then
    debian chromium /usr/bin/chromium
    exit
fi
mongodb || missing+=(mongo-java-server)
debian rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server || missing+=(rabbitmq-server)
debian openssh-server /usr/sbin/sshd || missing+=(openssh-server)
debian shellcheck /usr/bin/shellcheck || missing+=(shellcheck)
debian amqp-tools /usr/bin/amqp-consume || missing+=(amqp-tools)
# The shells whose completion is tested.
debian zsh /usr/bin/zsh || missing+=(zsh)
debian fish /usr/bin/fish || missing+=(fish)

if ((${#missing[@]})); then
    say "COULD NOT GET: ${missing[*]}; the tests that need them are skipped"
    [[ ${CI:-} == true ]] && exit 1
fi
exit 0
