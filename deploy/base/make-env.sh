#!/bin/bash
# Writes .env for docker compose: random keys and passwords that only their owner can read. Never touches one that is
# there, for what the database holds is sealed with its keys.
#   deploy/base/make-env.sh          for your own infrastructure
#   deploy/base/make-env.sh --lab    the lab besides: a stand-in cloud in a container of its own
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
    echo "make-env.sh: .env is there already; delete it (and the volumes: docker compose down -v) to begin anew" >&2
    exit 1
fi

key() { head -c 32 /dev/urandom | base64 -w 0 | tr '+/' '-_'; }
word() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; } # hexadecimal: it stands in URLs

umask 077
mongodb=$(word)
rabbitmq=$(word)
cat >.env.new <<END
# Made by deploy/base/make-env.sh. Whoever has this file can read every secret that kubevnfm keeps.

# Seals secrets in documents and messages: base64 keys of 32 bytes, divided by commas; the first one seals.
KUBEVNFM_KEYS=$(key)
# What the services show one another.
KUBEVNFM_INTERNAL_TOKEN=$(word)
# The signing keys of credentials call-backs are derived from it.
KUBEVNFM_CALLBACK_KEYS=$(key)

RABBITMQ_PASSWORD=$rabbitmq
# Of the user "observer", with which other systems read events and nothing else.
RABBITMQ_OBSERVER_PASSWORD=$(word)
KUBEVNFM_AMQP_URL=amqp://kubevnfm:$rabbitmq@rabbitmq:5672/

MONGODB_PASSWORD=$mongodb
KUBEVNFM_MONGO_URL=mongodb://kubevnfm:$mongodb@mongodb:27017/

# The gateway on the host. Callers are not asked who they are: keep it on loopback, or see docs/security.md.
KUBEVNFM_PUBLISH=127.0.0.1:9890
# What links in answers and notifications begin with.
KUBEVNFM_PUBLIC_URL=http://127.0.0.1:9890
KUBEVNFM_LOG_LEVEL=INFO
END
if [[ -n $lab ]]; then
    cat >>.env.new <<'END'

# Which files `docker compose` reads.
COMPOSE_FILE=docker-compose.yml:docker-compose.lab.yml
# The lab on the host: its OpenStack and its control interface.
KUBEVNFM_LAB_PUBLISH=127.0.0.1:9899
# How long kubeadm takes on each of its machines.
KUBEVNFM_LAB_NODE_SECONDS=1
END
fi
mv .env.new .env
echo "make-env.sh: wrote .env (mode 0600)"
