#!/usr/bin/env bash
#
# Helm on a master of a cluster, by the script of the package.
#
#   bash helm.sh helm --params FILE [--result FILE]
#
# --params, --result   as those of install_k8s_cluster.sh, whose functions this script uses: it stands beside as library.sh
# shellcheck disable=SC2154 # variables of the library
set -Eeuo pipefail
# shellcheck disable=SC1091 # the file is there on the machine
. "${0%/*}/library.sh"

# HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST, which the script of the package finds in http_proxy, https_proxy and no_proxy;
# beside FILE: install-helm-of-package.sh

has_helm() { # sets $found to its version
  local program
  program=$(command -v helm || printf '%s' "$root/usr/local/bin/helm")
  found=$("$program" version --short 2>/dev/null) && [[ -n $found ]]
}

helm_() {
  if ! has_helm; then
    step "the package's script that installs Helm" bash "$work/install-helm-of-package.sh"
    changed=true
    has_helm || die "the package's script ended well, but installed no helm that runs"
  fi
  say "helm $found is installed"
}

# ---- main ------------------------------------------------------------------------------------------------------------

task=${1:-}
if [[ $task != helm ]]; then
  printf 'usage: %s helm --params FILE [--result FILE]\n' "$0" >&2
  exit 64
fi
shift
read_arguments "$@"
: "${HTTP_PROXY_URL:=}" "${HTTPS_PROXY_URL:=}" "${NO_PROXY_LIST:=}"
# shellcheck disable=SC1090 # the caller's file
. "$params"
use_proxies
exec </dev/null
work_alone helm
helm_
write_result ",\"changed\":$changed${fields-}"
