#!/bin/bash
# Writes .env for docker compose: random keys and passwords that only their owner can read. It never changes a value of an
# existing file, because the secrets in the database are encrypted with its keys.
# Also makes the gateway's first user, an admin: the hash of its password in .kubevnfm/users/users.toml, the password itself
# in .kubevnfm/netrc, for curl. Existing files of these names stay as they are.
#   deploy/base/make-env.sh          for your own infrastructure
#   deploy/base/make-env.sh --lab    with the lab: a stand-in cloud in its own container
#   deploy/base/make-env.sh --add    after an update: adds to an existing file what this version needs and it lacks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

lab='' add=''
case ${1:-} in
'') ;;
--lab) lab=yes ;;
--add) add=yes ;;
*)
    echo "make-env.sh: no argument, --lab or --add expected, got $1" >&2
    exit 2
    ;;
esac
if [[ -z $add && -e .env ]]; then
    echo "make-env.sh: .env already exists; --add completes it after an update. To start again, delete it (and the" \
        "volumes: docker compose down -v)" >&2
    exit 1
fi
if [[ -n $add && ! -e .env ]]; then
    echo "make-env.sh: --add: there is no .env yet" >&2
    exit 1
fi

key() { head -c 32 /dev/urandom | base64 -w 0 | tr '+/' '-_'; }
word() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; } # hexadecimal, because URLs contain it

# Containers read these files as users of their own. They hold no secret, and a clone made with umask 077 keeps them shut.
find deploy/base/rabbitmq deploy/base/mongodb -type f ! -perm -004 -exec chmod a+r {} +

umask 077
trap 'rm -f .env.new .kubevnfm/*.new' EXIT
if [[ -n $add ]]; then
    cp .env .env.new
else
    echo '# Made by deploy/base/make-env.sh. With this file every secret that kubevnfm stores can be read.' >.env.new
fi

# $1: the name; $2: its value if it is not there yet; other arguments: lines of comment above it
setting() {
    local name=$1 value=$2
    shift 2
    grep -q "^$name=" .env.new && return 0
    (($# == 0)) || printf '# %s\n' "$@" >>.env.new
    printf '%s=%s\n' "$name" "$value" >>.env.new
}

setting KUBEVNFM_KEYS "$(key)" '' \
    'The keys for secrets in documents and messages: base64 keys of 32 bytes, separated by commas; the first one encrypts.'
setting KUBEVNFM_CALLBACK_KEYS "$(key)" 'The signing keys of callbacks with credentials are derived from it.'
setting KUBEVNFM_CREDENTIALS_TOKEN "$(word)" 'With it vim-registry alone reads kubeconfigs from credentials-receiver.'
setting RABBITMQ_PASSWORD "$(word)" '' "The password of RabbitMQ's administrator, which no service has."
setting RABBITMQ_OBSERVER_PASSWORD "$(word)" \
    'The password of the user "observer", with which other systems read events and nothing else.'
setting MONGODB_PASSWORD "$(word)" "The password of MongoDB's administrator, which no service has."
first="Each service's own users and token, with the rights that it needs (docs/security.md)."
for service in services/*/pyproject.toml; do
    name=$(basename "$(dirname "$service")" | tr 'a-z-' 'A-Z_')
    setting "RABBITMQ_${name}_PASSWORD" "$(word)" ${first:+'' "$first"}
    setting "MONGODB_${name}_PASSWORD" "$(word)"
    setting "KUBEVNFM_TOKEN_${name}" "$(word)" # for calls of this service by others
    first=
done
setting KUBEVNFM_USERS_DIR ./.kubevnfm/users '' \
    'The folder with users.toml: the users of the gateway and their passwords for HTTP Basic, as hashes (docs/security.md).'
setting KUBEVNFM_PUBLISH 127.0.0.1:9890 '' \
    "The gateway's address on the host. Passwords cross the network in clear beyond loopback: use TLS (docs/security.md)."
setting KUBEVNFM_PUBLIC_URL http://127.0.0.1:9890 'The first part of links in answers and notifications.'
setting KUBEVNFM_ALLOWED_HOSTS '' \
    'Names by which callers reach the gateway, in addition to loopback names and the host above; by commas.'
setting KUBEVNFM_LOG_LEVEL INFO
setting KUBEVNFM_LOG_FORM json
if [[ -n $lab ]]; then
    setting COMPOSE_FILE docker-compose.yml:docker-compose.lab.yml '' 'The files that docker compose reads.'
    setting KUBEVNFM_LAB_PUBLISH 127.0.0.1:9899 'The address of the lab on the host: its OpenStack and its control interface.'
    setting KUBEVNFM_LAB_NODE_SECONDS 1 'How long kubeadm takes on each of its machines.'
fi
# Prints the scrypt hash of the password on standard input, as `kubevnfm hash-password` does. A host without Python has the
# image from which the services are built.
hashed() {
    local python=(python3) image
    if ! command -v python3 >/dev/null; then
        image=$(sed -nE 's/^FROM (\S+) AS build$/\1/p' services/lcm-api/Dockerfile)
        python=(docker run --rm --interactive --network none "$image" python)
    fi
    "${python[@]}" -c '
import base64, hashlib, secrets, sys
salt, n, r, p = secrets.token_bytes(16), 15, 8, 3
made = hashlib.scrypt(sys.stdin.buffer.read(), salt=salt, n=1 << n, r=r, p=p, maxmem=2**27, dklen=32)
print("scrypt", n, r, p, *(base64.b64encode(part).decode() for part in (salt, made)), sep="$")'
}

users=.kubevnfm/users/users.toml is_new=''
if [[ ! -e $users ]]; then
    password=$(word)
    hash=$(printf %s "$password" | hashed) || {
        echo "make-env.sh: python3 or docker is needed to hash the admin's password" >&2
        exit 1
    }
    mkdir -p .kubevnfm/users
    for host in 127.0.0.1 localhost "$(sed -nE 's#^KUBEVNFM_PUBLIC_URL=https?://([^:/]+).*#\1#p' .env.new | tail -n 1)"; do
        [[ -z $host ]] || printf 'machine %s login admin password %s\n' "$host" "$password"
    done | sort -u >.kubevnfm/netrc.new
    cat >.kubevnfm/users.new <<TOML
# The users of the gateway (docs/security.md, "Users"). kubevnfm reads this file again when it changes.
[users.admin]
roles = ["admin"]
password = "$hash"
TOML
    mv .kubevnfm/netrc.new .kubevnfm/netrc
    mv .kubevnfm/users.new $users
    is_new=yes
fi
# A container reads it as a user of its own, and no other user of this host gets through the folder above.
chmod 0700 .kubevnfm
chmod 0755 .kubevnfm/users
chmod 0644 $users

mv .env.new .env
echo "make-env.sh: wrote .env (mode 0600)"
if [[ -n $is_new ]]; then
    echo "make-env.sh: made the gateway's user \"admin\"; its password is in .kubevnfm/netrc (mode 0600). To use it:"
    echo "    curl --netrc-file .kubevnfm/netrc $(sed -n 's/^KUBEVNFM_PUBLIC_URL=//p' .env | tail -n 1)/v1.0/vims"
fi
if grep -q '^KUBEVNFM_AUTH_MODES=.*none' .env; then
    echo "make-env.sh: .env has KUBEVNFM_AUTH_MODES=none, with which the gateway does not start in a container: remove the line" >&2
fi
# A hint only: images without a digest work too, and .env is complete.
deploy/base/pin-images.sh --check || true
