#!/usr/bin/env bash
#
# Clusters with Kuryr-Kubernetes, one task per call on a master. Every task checks first and changes only what is missing.
#
#   bash kuryr.sh <task> --params FILE [--result FILE]
#
# Tasks      etcd  entry  withdraw
# --params, --result   as those of install_k8s_cluster.sh, whose functions this script uses: it stands beside as library.sh
# shellcheck disable=SC2154,SC2034 # variables of the library
set -Eeuo pipefail
# shellcheck disable=SC1091 # the file is there on the machine
. "${0%/*}/library.sh"

# ---- etcd ------------------------------------------------------------------------------------------------------------
# THROUGH (the master whose etcd is asked), MASTERS (lines "name address"), TIMEOUT_S

members_started() { # each master has a member of its name that has started; prints the first one without
  local listed name address line
  listed=$(etcdctl_ member list -w simple) || return 1
  while read -r name address; do
    if [[ $address == *:* ]]; then address="[$address]"; fi
    line=$(grep -F -- ", $name, https://$address:2380," <<<"$listed") || line=
    if [[ $line != *', started, '* ]]; then
      printf '%s at %s is not a started member: %s\n' "$name" "$address" "${listed//$'\n'/; }" >&2
      return 1
    fi
  done <<<"$MASTERS"
}

etcd() {
  local complaint
  want THROUGH "$name_form"
  complaint=$(await "$TIMEOUT_S" members_started 2>&1) || die "etcd: ${complaint##*$'\n'}"
  say 'each master has a started member of etcd'
}

# ---- entry -----------------------------------------------------------------------------------------------------------
# API_ADDRESS (the virtual address of the load balancer), TIMEOUT_S

entry_answers() { kubectl_ --server "https://$API_ADDRESS:443" --request-timeout 5s get --raw /readyz; }

entry() { # pods reach the API at this address only: nothing else on the nodes forwards it
  local complaint
  want API_ADDRESS "$host_form"
  complaint=$(await "$TIMEOUT_S" entry_answers 2>&1) ||
    die "https://$API_ADDRESS:443, the load balancer of the API, does not answer within $TIMEOUT_S s: ${complaint##*$'\n'}"
  say "the API answers at https://$API_ADDRESS:443"
}

# ---- withdraw --------------------------------------------------------------------------------------------------------
# TIMEOUT_S

withdraw() { # Kuryr deletes the load balancer of a Service before the Service is gone
  local listed space name type rest
  doing="kubectl get services at $(server)"
  listed=$(kubectl_ get services -A --no-headers)
  doing=
  while read -r space name type rest; do
    : "$rest"
    if [[ $type != LoadBalancer ]]; then continue; fi
    say "service $space/$name is deleted"
    step "kubectl delete service $space/$name at $(server)" \
      kubectl_ -n "$space" delete service "$name" --ignore-not-found --timeout "${TIMEOUT_S}s"
    changed=true
  done <<<"$listed"
  # Last: it has to delete what it has made for the Services.
  if [[ -n $(kubectl_ -n kube-system get deployment kuryr-controller --ignore-not-found -o name) ]]; then
    step "kubectl delete deployment kube-system/kuryr-controller at $(server)" \
      kubectl_ -n kube-system delete deployment kuryr-controller --ignore-not-found --timeout "${TIMEOUT_S}s"
    changed=true
  fi
}

# ---- main ------------------------------------------------------------------------------------------------------------

task=${1:-}
case $task in
  etcd | entry | withdraw) shift ;;
  *)
    printf 'usage: %s TASK --params FILE [--result FILE]; the tasks are listed at the top of the file\n' "$0" >&2
    exit 64
    ;;
esac
read_arguments "$@"
: "${TIMEOUT_S:=600}" "${MASTERS:=}"
# shellcheck disable=SC1090 # the caller's file
. "$params"
want TIMEOUT_S '[0-9]+'
exec </dev/null
work_alone "kuryr-$task"
begun=true
"$task"
write_result ",\"changed\":$changed$fields"
