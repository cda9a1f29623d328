#!/bin/bash
# Writes .env for docker compose: random keys and passwords that only their owner can read. It never changes a value of an
# existing file, because the secrets in the database are encrypted with its keys.
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
trap 'rm -f .env.new' EXIT
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
setting KUBEVNFM_PUBLISH 127.0.0.1:9890 '' \
    "The gateway's address on the host. Callers are not authenticated: keep it on loopback, or see docs/security.md."
setting KUBEVNFM_PUBLIC_URL http://127.0.0.1:9890 'The first part of links in answers and notifications.'
setting KUBEVNFM_ALLOWED_HOSTS '' \
    'Names by which callers reach the gateway, in addition to loopback names and the host above; by commas.'
setting KUBEVNFM_LOG_LEVEL INFO
if [[ -n $lab ]]; then
    setting COMPOSE_FILE docker-compose.yml:docker-compose.lab.yml '' 'The files that docker compose reads.'
    setting KUBEVNFM_LAB_PUBLISH 127.0.0.1:9899 'The address of the lab on the host: its OpenStack and its control interface.'
    setting KUBEVNFM_LAB_NODE_SECONDS 1 'How long kubeadm takes on each of its machines.'
fi
mv .env.new .env
echo "make-env.sh: wrote .env (mode 0600)"
