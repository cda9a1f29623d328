#!/usr/bin/env bash
#
# Private container registries, one task per call. Every task checks first and changes only what is missing.
#
#   bash registry.sh <task> --params FILE [--result FILE]
#
# Tasks      on a node of a cluster:                registries
#            on a machine that becomes a registry:  engine  image  serve
# --params, --result   as those of install_k8s_cluster.sh, whose functions this script uses: it stands beside as library.sh
# shellcheck disable=SC2154 # variables of the library
set -Eeuo pipefail
# shellcheck disable=SC1091 # the file is there on the machine
. "${0%/*}/library.sh"

# ---- registries ------------------------------------------------------------------------------------------------------
# REGISTRIES (lines "number server url"), HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST; beside FILE, for registry NUMBER:
# registry-NUMBER.toml (containerd's hosts.toml), registry-NUMBER.crt (its CA, if it has one of its own), registry-NUMBER.header
# and registry-NUMBER.curl (its login, if it has one); logins.json (all logins as Docker writes them, if there are any)

readonly server_form='[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?'
# The kubelet looks for logins in several places. kubeadm reset deletes what is in the first one, /var/lib/kubelet.
readonly logins=$root/.docker/config.json

registries() {
  local number server url
  while read -r number server url; do
    [[ $number =~ ^[0-9]+$ && $server =~ ^$server_form$ && $url =~ ^https?://$server_form$ ]] ||
      die 'parameter REGISTRIES: lines of a number, a server and a URL expected'
    put_registry "$number" "$server"
  done <<<"$REGISTRIES"
  if [[ -f $work/logins.json ]]; then
    (umask 077 && mkdir -p "${logins%/*}")
    put "$logins" 600 "$(<"$work/logins.json")"
    chmod 600 "$logins"
  else
    remove "$logins"
  fi
  if ! command -v curl >/dev/null; then
    step 'apt-get update' apt_get update
    step 'installation of curl' apt_get install -y --no-install-recommends ca-certificates curl
  fi
  while read -r number server url; do
    ask_registry "$number" "$server" "$url"
    pull_path "$number" "$server"
    say "registry $server can be pulled from"
  done <<<"$REGISTRIES"
}

put_registry() { # NUMBER SERVER; containerd reads these files at each pull
  local folder=$root/etc/containerd/certs.d/$2
  if [[ -f $work/registry-$1.crt ]]; then put "$folder/ca.crt" 644 "$(<"$work/registry-$1.crt")"; fi
  put "$folder/hosts.toml" 644 "$(<"$work/registry-$1.toml")"
}

curl_() { # NUMBER URL OPTION...: sets $status, and $complaint if there was no answer; the headers are in registry-NUMBER.answer
  local number=$1 url=$2 code=0
  local -a options=(-sS --connect-timeout 5 --max-time 15 -D "$work/registry-$number.answer" -w '%{http_code}')
  if [[ -f $work/registry-$number.crt ]]; then
    # containerd, too, trusts the system's authorities beside the registry's own; a machine without the package
    # ca-certificates has none
    cat "$work/registry-$number.crt" >"$work/registry-$number.authorities"
    cat "$root/etc/ssl/certs/ca-certificates.crt" >>"$work/registry-$number.authorities" 2>/dev/null || true
    options+=(--cacert "$work/registry-$number.authorities")
  fi
  if [[ -f $work/registry-$number.curl ]]; then options+=(-K "$work/registry-$number.curl"); fi
  : >"$work/registry-$number.answer"
  status=$(curl "${options[@]}" "${@:3}" -o "$work/registry-$number.body" "$url" 2>"$work/registry-$number.complaint") || code=$?
  complaint=
  if ((code == 0)); then return 0; fi
  read -r complaint <"$work/registry-$number.complaint" || true # it fails at an empty file: curl may say nothing
  case $code in
    # a machine or a network that is slow at this moment, a registry that starts
    5 | 6 | 7 | 28 | 52 | 55 | 56) return 1 ;;
    51 | 58 | 59 | 60 | 77 | 83) die "registry $server: its certificate is not trusted: ${complaint:-curl ended with $code}" ;;
    35)
      # so OpenSSL reports an authority of the right name with another key
      case $complaint in *asn1* | *signature* | *certificate*) die "registry $server: its certificate is not trusted: $complaint" ;; esac
      die "registry $server: no TLS connection to $url: ${complaint:-curl ended with $code}"
      ;;
    *) die "registry $server: cannot be reached at $url: ${complaint:-curl ended with $code}" ;;
  esac
}

reach() { # NUMBER URL OPTION...
  local tries=0
  until curl_ "$@" && [[ $status != 50[0234] ]]; do
    if ((++tries == 3)); then
      if [[ -n $complaint ]]; then die "registry $server: cannot be reached at $2: $complaint"; fi
      die "registry $server: $2 answers with status $status"
    fi
    sleep 1
  done
}

header() { # NUMBER NAME: prints the value of a header of the last answer
  local name value
  while IFS=':' read -r name value; do
    if [[ ${name,,} == "$2" ]]; then
      value=${value%$'\r'}
      printf '%s' "${value# }"
      return 0
    fi
  done <"$work/registry-$1.answer"
}

# The registry's API, and whether the login is right: the API itself says so to a login by HTTP Basic, and a token server
# to one by token (distribution's specification, "Token Authentication").
ask_registry() { # NUMBER SERVER URL
  local number=$1 server=$2 url=$3/v2/ status complaint challenge realm service
  reach "$number" "$url"
  challenge=$(header "$number" www-authenticate)
  case $status in
    200) return 0 ;;
    401) ;;
    403) die "registry $server: $url refuses the login (status 403)" ;;
    400)
      # so servers of Go answer to HTTP
      if [[ $(<"$work/registry-$number.body") == *'HTTP request to an HTTPS server'* ]]; then
        die "registry $server: $url speaks HTTPS only, and connection_type 0 is HTTP"
      fi
      ;;&
    *) die "registry $server: $url is not the API of a registry: it answers with status $status" ;;
  esac
  if [[ ${challenge,,} != bearer\ * ]]; then
    if [[ -f $work/registry-$number.curl ]]; then die "registry $server: $url refuses the login (status 401)"; fi
    die "registry $server: $url asks for a login, and the request has none"
  fi
  # without a login, a registry of this kind gives tokens for its public images
  if [[ ! -f $work/registry-$number.curl ]]; then return 0; fi
  [[ $challenge =~ realm=\"([^\"]+)\" ]] || die "registry $server: $url names no token server"
  realm=${BASH_REMATCH[1]}
  [[ $challenge =~ service=\"([^\"]+)\" ]] && service=${BASH_REMATCH[1]} || service=
  [[ $realm =~ ^$url_form$ ]] || die "registry $server: $url names a token server of unknown form"
  reach "$number" "$realm" --get --data-urlencode "service=$service"
  [[ $status == 200 ]] || die "registry $server: $realm refuses the login (status $status)"
}

# Whether containerd can pull: its own resolver looks for an image that does not exist, by a copy of the registry's file.
pull_path() { # NUMBER SERVER
  local hosts=$work/hosts-$1 image=$2/kubevnfm/probe:none output
  # A token is for one image, and a registry gives none for an image that does not exist.
  if [[ $(header "$1" www-authenticate) == [Bb]earer\ * ]]; then return 0; fi
  (umask 077 && mkdir -p "$hosts/$2" && cat "$work/registry-$1.toml" >"$hosts/$2/hosts.toml")
  if [[ -f $work/registry-$1.header ]]; then cat "$work/registry-$1.header" >>"$hosts/$2/hosts.toml"; fi
  # It always fails, as there is no such image: the cases below differ by its text.
  output=$(timeout 15 ctr content fetch-object --hosts-dir "$hosts" "$image" 2>&1 >/dev/null) || true
  rm -rf "$hosts"
  case $output in
    *'failed to decode hosts.toml'*) die "registry $2: containerd cannot read its hosts.toml: ${output//$'\n'/; }" ;;
    *"$image: not found"* | *'with status code'* | *'unexpected status'*) ;; # it answered, and curl has tried the login
    *x509:*) die "registry $2: its certificate is not trusted by containerd: ${output##*ctr: }" ;;
    *) die "registry $2: containerd cannot pull from it: ${output##*ctr: }" ;;
  esac
}

# ---- engine ----------------------------------------------------------------------------------------------------------
# HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST, TIMEOUT_S

readonly owed=registry-restart-owed # set before a file of Docker changes, so that it survives an interruption in between

engine() {
  local system environment='' proxy=$root/etc/systemd/system/docker.service.d/kubevnfm-proxy.conf
  read_system
  case $system in
    'ubuntu 20.04' | 'ubuntu 22.04' | 'ubuntu 24.04' | 'debian 12') ;;
    *) die "operating system $system: Ubuntu 20.04, 22.04 or 24.04, or Debian 12 expected" ;;
  esac
  booted
  apt_proxy
  if ! command -v docker >/dev/null || ! command -v curl >/dev/null; then
    repair_packages
    step 'apt-get update' apt_get update
    step 'installation of docker.io' apt_get install -y --no-install-recommends docker.io ca-certificates curl
    step 'systemctl enable of docker' systemctl enable -q docker
    changed=true
  fi
  if [[ -n $HTTP_PROXY_URL ]]; then environment+="Environment=\"HTTP_PROXY=${HTTP_PROXY_URL//%/%%}\""$'\n'; fi
  if [[ -n $HTTPS_PROXY_URL ]]; then environment+="Environment=\"HTTPS_PROXY=${HTTPS_PROXY_URL//%/%%}\""$'\n'; fi
  if [[ -n $environment ]]; then
    environment="[Service]"$'\n'"${environment}Environment=\"NO_PROXY=${NO_PROXY_LIST//%/%%}\""
    holds "$proxy" "$environment" || put "$marks/$owed" 600 docker
    put "$proxy" 600 "$environment"
  fi
  if [[ -e $marks/$owed ]]; then
    step 'systemctl daemon-reload' systemctl daemon-reload
    step 'restart of docker with the new configuration' systemctl restart docker
    remove "$marks/$owed"
  fi
  systemctl is-active -q docker || step 'start of docker' systemctl start docker
  await "$TIMEOUT_S" docker info || die "Docker does not answer within $TIMEOUT_S s"
  mark prepare
}

# ---- image -----------------------------------------------------------------------------------------------------------
# IMAGE_SHA256 (of image.tar, which the caller puts beside FILE if the answer is that it is wanted) or, if that is empty,
# IMAGE_NAME, which is pulled

readonly own_image=registry:kubevnfm

image() {
  local wanted=${IMAGE_SHA256:-$IMAGE_NAME} loaded
  report_json wanted false
  if holds "$marks/registry-image" "$wanted" && docker image inspect "$own_image" >/dev/null 2>&1; then return 0; fi
  if [[ -n $IMAGE_SHA256 ]]; then
    if [[ ! -f $work/image.tar ]]; then
      fields=
      report_json wanted true
      return 0
    fi
    loaded=$(docker load -i "$work/image.tar") || die 'docker load of the image of the package failed'
    rm -f "$work/image.tar"
    loaded=${loaded##*Loaded image: }
    loaded=${loaded##*Loaded image ID: }
    loaded=${loaded%%$'\n'*}
    [[ -n $loaded ]] || die 'the image of the package: docker load names no image'
  else
    loaded=$IMAGE_NAME
    step "docker pull of $loaded" docker pull -q "$loaded"
  fi
  step "docker tag of $loaded" docker tag "$loaded" "$own_image"
  put "$marks/registry-image" 600 "$wanted"
  changed=true
}

# ---- serve -----------------------------------------------------------------------------------------------------------
# ADDRESS (the machine's own), PORT, TIMEOUT_S; beside FILE: tls.crt and tls.key (if it serves HTTPS), htpasswd and registry.curl (if it asks for a login)

readonly container=private_registry
readonly configuration=$root/etc/kubevnfm-registry

serve() {
  local file wanted state url scheme=http
  local -a options=(--restart=always -p "$PORT:5000" -v /private_registry:/var/lib/registry)
  want ADDRESS "$host_form"
  want PORT '[0-9]{1,5}'
  url=$ADDRESS
  if [[ $url == *:*:* && $url != \[* ]]; then url=[$url]; fi
  wanted="$PORT $(docker image inspect -f '{{.Id}}' "$own_image")"
  if [[ -f $work/tls.crt ]]; then
    scheme=https
    options+=(-e REGISTRY_HTTP_TLS_CERTIFICATE=/configuration/tls.crt -e REGISTRY_HTTP_TLS_KEY=/configuration/tls.key)
  fi
  if [[ -f $work/htpasswd ]]; then
    options+=(-e REGISTRY_AUTH=htpasswd -e REGISTRY_AUTH_HTPASSWD_REALM=registry)
    options+=(-e REGISTRY_AUTH_HTPASSWD_PATH=/configuration/htpasswd)
  fi
  for file in tls.crt tls.key htpasswd; do
    if [[ -f $work/$file ]]; then
      (umask 077 && mkdir -p "$configuration")
      put "$configuration/$file" 600 "$(<"$work/$file")"
      wanted+=" $(sha256sum <"$work/$file")"
    fi
  done
  if [[ -d $configuration ]]; then options+=(-v /etc/kubevnfm-registry:/configuration:ro); fi
  state=$(docker inspect --type container -f '{{.State.Status}}' "$container" 2>/dev/null) || state=
  if [[ -n $state ]] && ! holds "$marks/registry-container" "$wanted"; then
    step "docker rm of the container $container, which has other settings" docker rm -f "$container"
    state=
  fi
  case $state in
    running) ;;
    '')
      step "docker run of the registry on port $PORT" docker run -d --name "$container" "${options[@]}" "$own_image"
      put "$marks/registry-container" 600 "$wanted"
      changed=true
      ;;
    *)
      step "docker start of the container $container" docker start "$container"
      changed=true
      ;;
  esac
  url=$scheme://$url:$PORT/v2/
  await "$TIMEOUT_S" healthy "$url" ||
    die "the registry does not answer with 200 at $url within $TIMEOUT_S s: $(docker logs --tail 3 "$container" 2>&1)"
}

healthy() { # URL; its certificate is for the names by which others reach it
  local status
  local -a options=(-sS -k --noproxy '*' --max-time 5 -o "$work/body" -w '%{http_code}')
  if [[ -f $work/registry.curl ]]; then options+=(-K "$work/registry.curl"); fi
  status=$(curl "${options[@]}" "$1") || return 1
  if [[ $status != 200 ]]; then
    printf 'status %s\n' "$status" >&2
    return 1
  fi
}

# ---- main ------------------------------------------------------------------------------------------------------------

task=${1:-}
case $task in
  registries | engine | image | serve) shift ;;
  *)
    printf 'usage: %s TASK --params FILE [--result FILE]; the tasks are listed at the top of the file\n' "$0" >&2
    exit 64
    ;;
esac
read_arguments "$@"
: "${OWNER:=}" "${REGISTRIES:=}" "${HTTP_PROXY_URL:=}" "${HTTPS_PROXY_URL:=}" "${NO_PROXY_LIST:=}" "${TIMEOUT_S:=120}" \
  "${IMAGE_SHA256:=}" "${IMAGE_NAME:=}"
# shellcheck disable=SC1090 # the caller's file
. "$params"
use_proxies
export DEBIAN_FRONTEND=noninteractive
exec </dev/null
work_alone registry
# shellcheck disable=SC2034 # the library reads it
begun=true
"$task"
write_result ",\"changed\":$changed${fields-}"
