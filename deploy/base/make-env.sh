#!/bin/bash
# Writes .env for docker compose: random keys and passwords that only their owner can read. It never changes an existing
# file, because the secrets in the database are encrypted with its keys.
#   deploy/base/make-env.sh          for your own infrastructure
#   deploy/base/make-env.sh --lab    with the lab: a stand-in cloud in its own container
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

lab=
case ${1:-} in
'') ;;
--lab) lab=yes ;;
*)
    echo "make-env.sh: no argument or --lab expected, got $1" >&2
    exit 2
    ;;
esac
if [[ -e .env ]]; then
    echo "make-env.sh: .env already exists; to start again, delete it (and the volumes: docker compose down -v)" >&2
    exit 1
fi

key() { head -c 32 /dev/urandom | base64 -w 0 | tr '+/' '-_'; }
word() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; } # hexadecimal, because URLs contain it

umask 077
mongodb=$(word)
rabbitmq=$(word)
cat >.env.new <<END
# Made by deploy/base/make-env.sh. With this file every secret that kubevnfm stores can be read.

# The keys for secrets in documents and messages: base64 keys of 32 bytes, separated by commas; the first one encrypts.
KUBEVNFM_KEYS=$(key)
# The token with which the services authenticate to one another.
KUBEVNFM_INTERNAL_TOKEN=$(word)
# The signing keys of callbacks with credentials are derived from it.
KUBEVNFM_CALLBACK_KEYS=$(key)

RABBITMQ_PASSWORD=$rabbitmq
# The password of the user "observer", with which other systems read events and nothing else.
RABBITMQ_OBSERVER_PASSWORD=$(word)
KUBEVNFM_AMQP_URL=amqp://kubevnfm:$rabbitmq@rabbitmq:5672/

MONGODB_PASSWORD=$mongodb
KUBEVNFM_MONGO_URL=mongodb://kubevnfm:$mongodb@mongodb:27017/

# The gateway's address on the host. Callers are not authenticated: keep it on loopback, or see docs/security.md.
KUBEVNFM_PUBLISH=127.0.0.1:9890
# The first part of links in answers and notifications.
KUBEVNFM_PUBLIC_URL=http://127.0.0.1:9890
# Names by which callers reach the gateway, in addition to loopback names and the host above; by commas.
KUBEVNFM_ALLOWED_HOSTS=
KUBEVNFM_LOG_LEVEL=INFO
END
if [[ -n $lab ]]; then
    cat >>.env.new <<'END'

# The files that `docker compose` reads.
COMPOSE_FILE=docker-compose.yml:docker-compose.lab.yml
# The address of the lab on the host: its OpenStack and its control interface.
KUBEVNFM_LAB_PUBLISH=127.0.0.1:9899
# How long kubeadm takes on each of its machines.
KUBEVNFM_LAB_NODE_SECONDS=1
END
fi
mv .env.new .env
echo "make-env.sh: wrote .env (mode 0600)"
