#!/usr/bin/env bash
# kubevnfm-install-script: 5
#
# Makes one machine a node of a kubeadm cluster, one task per call. Every task checks first and changes only what is
# missing, so an interrupted call can simply be repeated.
#
#   bash install_k8s_cluster.sh <task> --params FILE [--result FILE]
#
# Tasks      on every node:  prepare  hosts  join
#            on one of several masters:  balance  certificates  members  remove_member  reset  stand_down
#            on a master:  init  network  admin  token  revoke  label  verify  facts  cordon  uncordon  drain  delete
# --params   shell assignments NAME='value', written by the caller (mode 0600); the names are listed per task below
# --result   gets one JSON object: {"task", "changed", ...}; after a failure {"task", "error", "command", "exit_code"}
#
# Ubuntu 22.04 and 24.04, Debian 12; containerd; packages of the Kubernetes project's apt repository or of a mirror of it.
# KUBEVNFM_SYSROOT precedes every system path (empty on a real machine).
set -Eeuo pipefail
shopt -s inherit_errexit
umask 022
export LC_ALL=C

readonly root=${KUBEVNFM_SYSROOT:-}
readonly cri_socket=unix:///run/containerd/containerd.sock
readonly admin_conf=$root/etc/kubernetes/admin.conf
readonly balancer_conf=$root/etc/haproxy/haproxy.cfg
readonly marks=$root/var/lib/kubevnfm # the completed tasks, each with the owner that they were done for
readonly namespace=kubevnfm-system

task=
params=
result=
changed=false
fields=
waiting_for= # what was said last about a wait
doing=      # what is being done, with its address, for the error; empty: the command itself is named
begun=false # whether the task works on the machine, so that a failure has something to show

# ---- output ----------------------------------------------------------------------------------------------------------

say() { printf '%s: %s\n' "$task" "$*"; }

waits() { # TEXT: the caller publishes it as the reason why the task takes so long; without TEXT: it goes on
  local text=${1-}
  text=${text//$'\n'/; }
  if [[ $text == "$waiting_for" ]]; then return 0; fi
  waiting_for=$text
  printf '%s: waits:%s\n' "$task" "${text:+ ${text:0:400}}"
}

json_text() { # sets $json to the argument as a JSON string
  json=${1//\\/\\\\}
  json=${json//\"/\\\"}
  json=${json//$'\n'/\\n}
  json=${json//$'\r'/\\r}
  json=${json//$'\t'/\\t}
  json=\"${json//[[:cntrl:]]/ }\"
}

report() { # name text
  json_text "$2"
  fields+=",\"$1\":$json"
}

report_json() { fields+=",\"$1\":$2"; } # name, a JSON value

write_result() {
  if [[ -n $result ]]; then printf '{"task":"%s"%s}\n' "$task" "$1" >"$result"; fi
}

die() {
  trap - ERR
  printf '%s: %s\n' "$task" "$*" >&2
  json_text "$*"
  write_result ",\"error\":$json"
  diagnose
  exit 1
}

failed() {
  local code=$1 what=${doing:-line $2: ${3%%$'\n'*}}
  trap - ERR
  if ((BASH_SUBSHELL > 0)); then exit "$code"; fi # the outer shell reports
  printf '%s: %s ended with exit code %s\n' "$task" "$what" "$code" >&2
  json_text "$what"
  write_result ",\"command\":$json,\"exit_code\":$code"
  diagnose
  exit "$code"
}
trap 'failed "$?" "$LINENO" "$BASH_COMMAND"' ERR

step() { # WHAT COMMAND...: WHAT is said if the command fails
  doing=$1
  "${@:2}"
  doing=
}

# ---- after a failure -------------------------------------------------------------------------------------------------
# It is bounded, and on stderr: all that an engineer would look at. The caller takes the cause from the lines before the first one.

show() { # TITLE LINES COMMAND...: the last lines of its output, each cut
  printf -- '---- %s\n' "$1"
  timeout 20 "${@:3}" 2>&1 | tail -n "$2" | cut -c 1-300
}

diagnose() {
  if ! $begun; then return 0; fi
  set +e
  exec >&2
  printf '%s\n' '==== what the machine shows after the failure ===='
  case $task in
    prepare)
      if command -v containerd >/dev/null; then show containerd 15 journalctl -u containerd -n 15 -o cat --no-pager; fi
      return 0
      ;;
    balance)
      show addresses 10 ip -o address show
      show 'haproxy and keepalived' 20 journalctl -u haproxy -u keepalived -n 20 -o cat --no-pager
      return 0
      ;;
    init | join | reset)
      # without the lines of level I, which are most of them
      show kubelet 20 bash -c "journalctl -u kubelet -n 300 -o cat --no-pager | grep -v '^I[0-9]'"
      container_lines
      ;;
  esac
  if [[ -s $admin_conf ]]; then cluster_lines; fi
}

container_lines() { # the newest log of each container; its number is that of the restarts
  local folder log shown=0
  for folder in "$root"/var/log/pods/*/*/; do
    log=$(find "$folder" -name '*.log' 2>/dev/null | sort -V | tail -n 1)
    if [[ -z $log || $((++shown)) -gt 8 ]]; then continue; fi
    show "container ${log#"$root/var/log/pods/"}" 6 cat "$log"
  done
}

cluster_lines() {
  local listed space name ready status rest shown=0
  local -a kubectl=(kubectl --kubeconfig "$admin_conf" --request-timeout 5s)
  show nodes 60 "${kubectl[@]}" get nodes -o wide
  show 'why they are Ready or not' 60 "${kubectl[@]}" get nodes -o "jsonpath=$readiness"
  show pods 100 "${kubectl[@]}" get pods -A -o wide
  listed=$(timeout 20 "${kubectl[@]}" get pods -A --no-headers 2>/dev/null)
  while read -r space name ready status rest; do
    : "$rest"
    if [[ -z $name || $status == Completed || ($status == Running && ${ready%/*} == "${ready#*/}") ]]; then continue; fi
    if ((++shown > 6)); then break; fi
    show "$space/$name: $status" 3 "${kubectl[@]}" -n "$space" get pod "$name" -o "jsonpath=$waiting"
    show "$space/$name: log" 12 "${kubectl[@]}" -n "$space" logs "$name" --all-containers --tail 12
  done <<<"$listed"
}

# ---- checks and changes ----------------------------------------------------------------------------------------------

want() { # NAME REGEX: the parameter exists and matches
  [[ ${!1:-} =~ ^($2)$ ]] || die "parameter $1: missing, or not of the expected form"
}

readonly host_form='[A-Za-z0-9.:-]+|\[[0-9A-Fa-f:]+\]'
readonly cidr_form='[0-9A-Fa-f.:]+/[0-9]{1,3}'
readonly name_form='[a-z0-9]([a-z0-9.-]*[a-z0-9])?'

holds() { [[ -f $1 && $(<"$1") == "$2" ]]; } # FILE TEXT

put() { # FILE MODE TEXT: atomic, so that no reader sees half of it
  local file=$1 mode=$2 text=$3
  if holds "$file" "$text"; then return 0; fi
  [[ -d ${file%/*} ]] || mkdir -p "${file%/*}"
  [[ ! -e $file.kubevnfm ]] || rm -f "$file.kubevnfm" # of a call that was killed, with a mode of its own
  umask "$((666 - mode))"                             # it may contain a password, so it is created with its mode
  printf '%s\n' "$text" >"$file.kubevnfm"
  umask 022
  mv -f "$file.kubevnfm" "$file"
  changed=true
}

remove() { # FILE
  if [[ -e $1 ]]; then
    rm -f "$1"
    changed=true
  fi
}

readonly usual_wait_s=10 # a shorter wait is not worth a line

await() { # SECONDS COMMAND...: until it succeeds, at growing intervals; prints its last error
  local since=$SECONDS until=$((SECONDS + $1)) pause=0.2 complaint
  shift
  while ! complaint=$("$@" 2>&1 >/dev/null); do
    if ((SECONDS >= until)); then
      printf '%s\n' "$complaint" >&2
      return 1
    fi
    if ((SECONDS - since >= usual_wait_s)) && [[ -n $complaint ]]; then waits "${complaint##*$'\n'}"; fi
    sleep "$pause"
    case $pause in 0.2) pause=0.5 ;; 0.5) pause=1 ;; 1) pause=2 ;; *) pause=3 ;; esac
  done
  waits
}

marked() { holds "$marks/$1" "$OWNER"; }

mark() { put "$marks/$1" 600 "$OWNER"; }

# ---- prepare ---------------------------------------------------------------------------------------------------------
# NODE_NAME, HOSTS_ENTRIES (lines "address name"), KUBERNETES_VERSION, HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST,
# APT_REPOSITORY, APT_KEY_URL, IMAGE_MIRROR (each may be empty), BALANCED (true: one of several masters)

prepare() {
  want NODE_NAME "$name_form"
  supported_system
  booted
  host_name
  hosts_block
  no_swap
  kernel
  apt_proxy
  packages
  runtime_config
  runtime_running
  report kubernetes_version "v$version"
}

read_system() { # sets $system: "ubuntu 22.04"
  local name value id='' release=''
  while IFS='=' read -r name value; do
    value=${value//\"/}
    case $name in ID) id=$value ;; VERSION_ID) release=$value ;; esac
  done <"$root/etc/os-release"
  system="$id $release"
}

supported_system() {
  local system
  read_system
  case $system in
    'ubuntu 22.04' | 'ubuntu 24.04' | 'debian 12') ;;
    *) die "operating system $system: Ubuntu 22.04 or 24.04, or Debian 12 expected" ;;
  esac
}

booted() {
  local code=0
  if marked prepare || ! command -v cloud-init >/dev/null; then return 0; fi
  waits 'cloud-init has not ended its work on the machine yet'
  cloud-init status --wait >/dev/null 2>&1 || code=$?
  waits
  if ((code != 0)); then say "cloud-init ended with code $code; continuing"; fi
}

host_name() {
  # otherwise cloud-init would set the image's host name again at the next boot
  put "$root/etc/cloud/cloud.cfg.d/99-kubevnfm.cfg" 644 'preserve_hostname: true'
  if [[ $(<"$root/etc/hostname") != "$NODE_NAME" ]]; then
    step "hostnamectl set-hostname $NODE_NAME" hostnamectl set-hostname "$NODE_NAME"
    changed=true
  fi
}

hosts_block() {
  local line other='' inside=false
  while IFS= read -r line || [[ -n $line ]]; do
    case $line in
      '# kubevnfm begin') inside=true ;;
      '# kubevnfm end') inside=false ;;
      *) $inside || other+=$line$'\n' ;;
    esac
  done <"$root/etc/hosts"
  put "$root/etc/hosts" 644 "$other# kubevnfm begin"$'\n'"$HOSTS_ENTRIES"$'\n''# kubevnfm end'
}

no_swap() {
  local text device point kind rest line
  text=
  while IFS= read -r line || [[ -n $line ]]; do
    read -r device point kind rest <<<"$line"
    : "$device $point $rest"
    if [[ $kind == swap && $line != '#'* ]]; then line="# kubevnfm: $line"; fi
    text+=$line$'\n'
  done <"$root/etc/fstab"
  put "$root/etc/fstab" 644 "${text%$'\n'}"
  mapfile -t swaps <"$root/proc/swaps" # the first line is the heading
  if ((${#swaps[@]} > 1)); then
    step 'swapoff -a' swapoff -a
    changed=true
  fi
  no_swap_units
}

no_swap_units() { # those of systemd would make it again at the next boot: unit files, what generators write (zram, GPT), services
  local folder file masked=false own=$root/etc/systemd/system
  for folder in etc usr/lib lib run; do
    for file in "$root/$folder/systemd/"{system,generator,generator.early,generator.late}/*.swap \
      "$root/$folder/systemd/system/"{zramswap,zram-config,dphys-swapfile,swapspace}.service; do
      if [[ -f $file ]]; then mask_unit "${file##*/}"; fi # a masked one is no file
    done
  done
  mask_unit swap.target
  if $masked; then step 'systemctl daemon-reload' systemctl daemon-reload; fi
}

mask_unit() { # as systemctl does it, which refuses to mask a unit that the administrator has written
  local unit=$own/$1
  if [[ -L $unit && ! -f $unit ]]; then return 0; fi
  if [[ -f $unit ]]; then step "removal of the unit $1" mv "$unit" "$unit.kubevnfm"; fi
  mkdir -p "$own"
  step "mask of the unit $1" ln -s /dev/null "$unit"
  masked=true changed=true
}

kernel() {
  local module key loaded
  put "$root/etc/modules-load.d/kubevnfm.conf" 644 $'overlay\nbr_netfilter'
  loaded=$'\n'
  if [[ -f $root/proc/modules ]]; then loaded+=$(<"$root/proc/modules"); fi # missing if the kernel has no modules
  for module in overlay br_netfilter; do
    # a built-in br_netfilter has settings, but no folder of its own
    if [[ $module == br_netfilter && -d $root/proc/sys/net/bridge ]]; then continue; fi
    if [[ $loaded != *$'\n'"$module "* && ! -d $root/sys/module/$module ]]; then
      step 'modprobe of overlay and br_netfilter' modprobe -a overlay br_netfilter
      changed=true
      break
    fi
  done
  put "$root/etc/sysctl.d/90-kubevnfm.conf" 644 'net.bridge.bridge-nf-call-iptables = 1
net.bridge.bridge-nf-call-ip6tables = 1
net.ipv4.ip_forward = 1'
  for key in net/bridge/bridge-nf-call-iptables net/bridge/bridge-nf-call-ip6tables net/ipv4/ip_forward; do
    if [[ ! -f $root/proc/sys/$key || $(<"$root/proc/sys/$key") != 1 ]]; then
      step 'sysctl with /etc/sysctl.d/90-kubevnfm.conf' sysctl -q -p "$root/etc/sysctl.d/90-kubevnfm.conf"
      changed=true
      break
    fi
  done
}

apt_proxy() {
  local text=''
  if [[ -n $HTTP_PROXY_URL ]]; then text+="Acquire::http::Proxy \"$HTTP_PROXY_URL\";"$'\n'; fi
  if [[ -n $HTTPS_PROXY_URL ]]; then text+="Acquire::https::Proxy \"$HTTPS_PROXY_URL\";"$'\n'; fi
  if [[ -n $text ]]; then
    put "$root/etc/apt/apt.conf.d/90kubevnfm-proxy" 600 "${text%$'\n'}" # may contain a password
  else
    remove "$root/etc/apt/apt.conf.d/90kubevnfm-proxy"
  fi
}

# The mark for a restart of containerd is set before its files change, so that it survives an interruption in between.
put_runtime() { # FILE MODE TEXT; without TEXT the file is removed
  if (($# == 3)); then
    holds "$1" "$3" || put "$marks/restart-owed" 600 containerd
    put "$@"
  elif [[ -e $1 ]]; then
    put "$marks/restart-owed" 600 containerd
    remove "$1"
  fi
}

# kubeadm itself says which image its release wants: a mirror that was filled from this list has no other.
sandbox_image() { # sets $sandbox
  local images image
  sandbox=
  doing="kubeadm config images list for v$version"
  images=$(kubeadm config images list --kubernetes-version "v$version")
  doing=
  while read -r image; do
    case $image in */pause:*) sandbox=$image ;; esac
  done <<<"$images"
  [[ -n $sandbox ]] || die "kubeadm config images list names no image of the sandbox (pause) for v$version"
}

runtime_config() {
  local sandbox environment='' mirror=() proxy=()
  sandbox_image
  put_runtime "$root/etc/containerd/config.toml" 644 "version = 2

[plugins.\"io.containerd.grpc.v1.cri\"]
  sandbox_image = \"$sandbox\"

[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]
  runtime_type = \"io.containerd.runc.v2\"

[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc.options]
  SystemdCgroup = true

[plugins.\"io.containerd.grpc.v1.cri\".registry]
  config_path = \"/etc/containerd/certs.d\""
  if [[ -n $IMAGE_MIRROR ]]; then
    mirror=("[host.\"$IMAGE_MIRROR\"]
  capabilities = [\"pull\", \"resolve\"]")
  fi
  put_runtime "$root/etc/containerd/certs.d/_default/hosts.toml" 644 "${mirror[@]}"
  if [[ -n $HTTP_PROXY_URL ]]; then environment+="Environment=\"HTTP_PROXY=${HTTP_PROXY_URL//%/%%}\""$'\n'; fi
  if [[ -n $HTTPS_PROXY_URL ]]; then environment+="Environment=\"HTTPS_PROXY=${HTTPS_PROXY_URL//%/%%}\""$'\n'; fi
  if [[ -n $environment ]]; then
    proxy=("[Service]"$'\n'"${environment}Environment=\"NO_PROXY=${NO_PROXY_LIST//%/%%}\"")
  fi
  put_runtime "$root/etc/systemd/system/containerd.service.d/kubevnfm-proxy.conf" 600 "${proxy[@]}"
  put "$root/etc/crictl.yaml" 644 "runtime-endpoint: $cri_socket"
}

readonly plain_packages='containerd conntrack ethtool iptables socat'
readonly balancer_packages='haproxy keepalived'
# Nothing here can answer dpkg's question about a configuration file that was changed: the file on the machine stays.
readonly lock_timeout_s=300
readonly -a apt=(apt-get -o "DPkg::Lock::Timeout=$lock_timeout_s" -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confold)

# apt-get itself waits in silence for dpkg, and not at all for the lists of packages, which a machine often renews when it boots.
apt_get() { # ARGUMENTS...: once no other program holds a lock of it
  local until=$((SECONDS + lock_timeout_s)) lock holder name quiet=-qq
  if [[ $1 == update ]]; then quiet=-q; fi # with two it does not say why it cannot fetch a list
  while lock_holder; do
    name=$(cat "/proc/$holder/comm" 2>/dev/null) || continue # it has ended
    name="Could not get lock ${lock#"$root"}: it is held by process $holder ($name)"
    if ((SECONDS >= until)); then die "$name"; fi
    waits "$name"
    sleep 1
  done
  waits
  "${apt[@]}" "$quiet" "$@"
}

# The kernel lists the locks by inode. To search the open files of all processes instead takes up to a second of a machine with many.
lock_holder() { # sets $lock, the first lock that a process holds, and $holder, its number; fails if there is none
  local line inode inodes opened
  local -a locks=("$root"/var/lib/dpkg/lock* "$root"/var/lib/apt/lists/lock "$root"/var/cache/apt/archives/lock) held=()
  inodes=$(stat -c %i "${locks[@]}" 2>/dev/null) || true # some may be missing
  mapfile -t held 2>/dev/null </proc/locks || true
  for line in "${held[@]}"; do
    # Another file system may have the same inode. A process that waits for a lock is listed with an arrow.
    [[ $line =~ ^[0-9]+:\ +[A-Z]+\ +[A-Z]+\ +[A-Z]+\ +([0-9]+)\ +[0-9a-f]+:[0-9a-f]+:([0-9]+)\  ]] || continue
    holder=${BASH_REMATCH[1]} inode=${BASH_REMATCH[2]}
    [[ $'\n'$inodes$'\n' == *$'\n'$inode$'\n'* ]] || continue
    for opened in "/proc/$holder/fd/"*; do
      for lock in "${locks[@]}"; do
        if [[ $opened -ef $lock ]]; then return 0; fi
      done
    done
  done
  return 1
}

# An installation that failed or was killed leaves packages between two states. Until they are repaired, apt-get refuses to
# install anything, or fails at the same package again.
repair_packages() {
  local name status listed broken='' halves=()
  # shellcheck disable=SC2016 # dpkg-query's own fields
  doing='dpkg-query of all packages'
  listed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n')
  doing=
  while read -r name status; do
    case $status in
      '' | installed | config-files | not-installed) continue ;;
      half-installed) halves+=(--reinstall "$name") ;; # its files are incomplete; without this option they stay so
    esac
    broken+=" $name"
  done <<<"$listed"
  if [[ -z $broken && -z $(find "$root/var/lib/dpkg/updates" -type f 2>/dev/null) ]]; then return 0; fi
  say "an installation was interrupted or failed; repairing the packages$broken"
  dpkg --force-confold --configure -a || say 'dpkg could not configure all packages: apt-get installs what they lack'
  step 'apt-get update' apt_get update
  step "repair of the packages$broken" apt_get install -y -f --no-install-recommends "${halves[@]}"
}

packages() {
  local name wanted have missing=() plain=$plain_packages key=$root/etc/apt/keyrings/kubernetes.asc
  export DEBIAN_FRONTEND=noninteractive
  if [[ $BALANCED == true ]]; then plain+=" $balancer_packages"; fi
  # It fails if one of them is not known to dpkg, and prints the others all the same: what it does not print is missing.
  # shellcheck disable=SC2016,SC2086 # dpkg-query's own fields; a list of words
  have=$(dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' $plain kubelet kubeadm kubectl 2>/dev/null) || true
  have=$'\n'$have$'\n'
  for name in $plain; do
    [[ $have =~ $'\n'$name' '[^' ']+' installed'$'\n' ]] || missing+=("$name")
  done
  for name in kubelet kubeadm kubectl; do
    wanted=$'\n'$name" ${version//./\\.}-[^ ]+ installed"$'\n'
    [[ $have =~ $wanted ]] || missing+=("$name=$version-*")
  done
  if ((${#missing[@]} == 0)); then return 0; fi
  say "installing ${missing[*]}"
  repair_packages
  if ! command -v curl >/dev/null; then
    step 'apt-get update' apt_get update
    step 'installation of curl' apt_get install -y --no-install-recommends ca-certificates curl
  fi
  mkdir -p "${key%/*}"
  # each time: the key of an earlier try may have been the wrong one
  step "download of the package repository's key from $apt_key" curl -fsSL --retry 3 -o "$key.kubevnfm" "$apt_key"
  mv -f "$key.kubevnfm" "$key"
  put "$root/etc/apt/sources.list.d/kubernetes.list" 644 \
    "deb [signed-by=/etc/apt/keyrings/kubernetes.asc] $apt_repository /"
  step "apt-get update with the Kubernetes packages of $apt_repository" apt_get update
  step "installation of ${missing[*]} with the Kubernetes packages of $apt_repository" \
    apt_get install -y --no-install-recommends --allow-downgrades --allow-change-held-packages "${missing[@]}"
  step 'apt-mark hold of kubelet, kubeadm and kubectl' apt-mark -qq hold kubelet kubeadm kubectl
  step 'systemctl enable of containerd and kubelet' systemctl enable -q containerd kubelet
  changed=true
}

runtime_running() {
  if [[ -e $marks/restart-owed ]]; then
    step 'systemctl daemon-reload' systemctl daemon-reload
    step 'restart of containerd with the new configuration' systemctl restart containerd
    remove "$marks/restart-owed"
  elif ! marked prepare; then
    systemctl is-active -q containerd || step 'start of containerd' systemctl start containerd
  fi
  mark prepare
}

# ---- balance ---------------------------------------------------------------------------------------------------------
# NODE_NAME, NODE_IP, ENDPOINT (the virtual address and its port), MASTERS (lines "name address"), ROUTER_ID, PRIORITY,
# VRRP_PASSWORD (8 characters), PREFIX_LENGTH (empty: that of the interface), TIMEOUT_S

on_address() { # LINE ADDRESS: whether a line of `ip -o address` is about it; sets $interface and $prefix
  local number family address rest
  read -r number interface family address rest <<<"$1"
  : "$number $family $rest"
  prefix=${address#*/}
  [[ ${address%/*} == "$2" ]]
}

find_interface() { # the one with NODE_IP
  local line listed
  doing='ip -o address show'
  listed=$(ip -o address show)
  doing=
  while IFS= read -r line; do
    if on_address "$line" "$NODE_IP"; then return 0; fi
  done <<<"$listed"
  die "no interface has the address $NODE_IP"
}

# The owed reload is noted before the file changes, so that it survives an interruption in between.
put_balancer() { # UNIT MODE TEXT
  local file=$balancer_conf
  if [[ $1 == keepalived ]]; then file=$root/etc/keepalived/keepalived.conf; fi
  if ! holds "$file" "$3"; then
    put "$marks/reload-owed-$1" 600 "$1"
    put "$file" "$2" "$3"
  fi
  if [[ ! -e $marks/reload-owed-$1 ]] && systemctl is-active -q "$1"; then return 0; fi
  step "systemctl enable of $1" systemctl enable -q "$1"
  step "systemctl reload-or-restart of $1 with $file" systemctl reload-or-restart "$1"
  remove "$marks/reload-owed-$1"
  changed=true
}

# A server is used while its API says that it is ready, etcd included (401: it answers no anonymous requests). A connection
# that fails goes to another one.
haproxy_text() { # HOST PORT: prints the configuration
  local name address servers='' any='*'
  if [[ $1 == '['* ]]; then any='::'; fi
  while read -r name address; do
    want name "$name_form"
    want address "$host_form"
    if [[ $address == *:* ]]; then address="[$address]"; fi
    servers+=$'\n'"  server $name $address:6443"
  done <<<"$MASTERS"
  cat <<END
global
  log /dev/log local0 notice
  user haproxy
  group haproxy

defaults
  mode tcp
  log global
  option dontlognull
  option tcpka
  option redispatch 1
  retries 3
  timeout connect 2s
  timeout check 2s
  timeout client 1h
  timeout server 1h

frontend kubernetes
  bind $any:$2
  default_backend masters

backend masters
  balance roundrobin
  option httpchk GET /readyz
  http-check expect rstatus ^(200|401)$
  default-server check check-ssl verify none inter 1s fall 2 rise 1 on-marked-down shutdown-sessions$servers
END
}

# Advertisements go to the other masters only: other routers of the network cannot take part, whatever their id is.
# pidof would not do as the check: it is a link to killall5, and keepalived runs what a link leads to.
keepalived_text() { # VIRTUAL-ADDRESS: prints the configuration
  local name address peers='' authentication=''
  while read -r name address; do
    if [[ $address != "$NODE_IP" ]]; then peers+="$address"$'\n    '; fi
  done <<<"$MASTERS"
  # VRRP over IPv6 (version 3) has none
  if [[ $1 != *:* ]]; then
    authentication="
  authentication {
    auth_type PASS
    auth_pass $VRRP_PASSWORD
  }"
  fi
  cat <<END
global_defs {
  router_id $NODE_NAME
  enable_script_security
  script_user root
}

vrrp_script haproxy {
  script "/usr/bin/systemctl -q is-active haproxy"
  interval 3
  timeout 3
  fall 3
  rise 1
}

vrrp_instance kubernetes {
  state BACKUP
  nopreempt
  interface $interface
  virtual_router_id $ROUTER_ID
  priority $PRIORITY
  advert_int 1
  unicast_src_ip $NODE_IP
  unicast_peer {
    ${peers%$'\n    '}
  }$authentication
  virtual_ipaddress {
    $1/${PREFIX_LENGTH:-$prefix} dev $interface
  }
  track_script {
    haproxy
  }
}
END
}

# shellcheck disable=SC2016 # the inner shell's own arguments
accepts() { # ADDRESS PORT [SECONDS]; without the brackets of an IPv6 address, which bash would take for a name
  local address=${1#[}
  timeout "${3:-5}" bash -c '</dev/tcp/$0/$1' "${address%]}" "$2"
}

balance() {
  local text host port interface='' prefix=''
  want NODE_NAME "$name_form"
  want NODE_IP "$host_form"
  want ENDPOINT "($host_form):[0-9]+"
  want ROUTER_ID '[0-9]{1,3}'
  want PRIORITY '[0-9]{1,3}'
  want VRRP_PASSWORD '[A-Za-z0-9]{8}'
  [[ $PREFIX_LENGTH =~ ^[0-9]{0,3}$ ]] || die 'parameter PREFIX_LENGTH: a number expected'
  host=${ENDPOINT%:*} port=${ENDPOINT##*:}
  text=$(haproxy_text "$host" "$port")
  printf '%s\n' "$text" >"$work/haproxy.cfg"
  step 'haproxy -c: the check of its configuration' haproxy -c -q -f "$work/haproxy.cfg"
  put_balancer haproxy 644 "$text"
  host=${host#[}
  host=${host%]}
  find_interface
  text=$(keepalived_text "$host")
  put_balancer keepalived 600 "$text"
  await "$TIMEOUT_S" accepts "$host" "$port" || die "the virtual address $host does not answer at port $port within\
 $TIMEOUT_S s: no master holds it, or their ports do not allow it (allowed_address_pairs, VRRP in the security groups)"
}

# ---- init ------------------------------------------------------------------------------------------------------------
# NODE_NAME, NODE_IP, ENDPOINT (host:port), CERT_SANS (words), POD_CIDR, SERVICE_CIDR, NODE_CIDR_MASK,
# CERTIFICATE_KEY (admin only), BALANCED, TIMEOUT_S, KUBE_PROXY (false: Services are served by load balancers of the cloud)

kubectl_() { kubectl --kubeconfig "$admin_conf" "$@"; }

server() { # prints the API's URL
  local word url
  while read -r word url; do
    if [[ $word == server: ]]; then printf '%s' "$url" && return 0; fi
  done <"$admin_conf"
  printf 'the API server'
}

# ---- pods that cannot start ------------------------------------------------------------------------------------------

readonly back_off='(Init:)?(CrashLoopBackOff|ImagePullBackOff|ErrImagePull|InvalidImageName|Create[A-Za-z]*Error)'
readonly waiting='{range .status.initContainerStatuses[*]}{.state.waiting.message}{"\n"}{end}{range .status.containerStatuses[*]}{.state.waiting.message}{"\n"}{end}'
readonly readiness='{range .items[*]}{.metadata.name}: {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].message}{"\n"}{end}'
readonly set_counts='{.status.desiredNumberScheduled}|{.status.updatedNumberScheduled}|{.status.numberAvailable}'
readonly replica_counts='{.spec.replicas}|{.status.updatedReplicas}|{.status.availableReplicas}'
readonly places='{range .items[*]}{.spec.nodeName} {.metadata.deletionTimestamp}{"\n"}{end}'
declare -A looks=() # how often each pod was seen in back-off

selector() { # NAMESPACE KIND/NAME: prints the labels of its pods
  local labels
  labels=$(kubectl_ -n "$1" get "$2" -o 'jsonpath={.spec.selector.matchLabels}')
  labels=${labels//[\{\}\"]/}
  printf '%s' "${labels//:/=}"
}

stuck_pods() { # NAMESPACE KIND/NAME: prints name and status of its pods that cannot start
  local labels name ready status rest
  labels=$(selector "$@")
  kubectl_ -n "$1" get pods --no-headers -l "$labels" 2>/dev/null | while read -r name ready status rest; do
    : "$ready $rest"
    if [[ $status =~ ^$back_off$ ]]; then printf '%s %s\n' "$name" "$status"; fi
  done
}

# One failed start may be a matter of moments: an image gets some ten seconds, a crash half a minute of back-offs. So does what
# kubelet refuses itself: one that has just started refuses all pods until it has read the Services.
refuse_stuck_pods() { # NAMESPACE KIND/NAME
  local name status limit listed why
  listed=$(stuck_pods "$@" 2>/dev/null) || return 0 # an API that does not answer is a matter of the time limit
  while read -r name status; do
    if [[ -z $name ]]; then continue; fi
    looks[$name]=$((${looks[$name]:-0} + 1))
    case $status in *Crash* | *Create*) limit=10 ;; *) limit=4 ;; esac
    if ((looks[$name] < limit)); then continue; fi
    why=$(kubectl_ -n "$1" get pod "$name" -o "jsonpath=$waiting") || why=
    # Without a log, kubectl's own error stands in its place: the failure to report is that of the pod.
    if [[ $status == *Crash* ]]; then why+="; its log ends: $(kubectl_ -n "$1" logs "$name" --tail 1 2>&1)" || true; fi
    die "$2 in namespace $1: pod $name cannot start: $status: ${why//$'\n'/ }"
  done <<<"$listed"
}

# Pods on nodes that are out of order are not waited for: their machines may be the next to be replaced, and it takes
# minutes until pods of a Deployment run elsewhere.
runs_where_it_can() { # NAMESPACE KIND/NAME
  local states name ready rest counts=$set_counts desired updated available listed gone dead=' ' lost=0
  states=$(kubectl_ get nodes -o "jsonpath=$readiness") || return 1
  while read -r name ready rest; do
    : "$rest"
    if [[ -n $name && $ready != True ]]; then
      dead+="${name%:} "
      lost=$((lost + 1))
    fi
  done <<<"$states"
  if ((lost == 0)); then return 1; fi
  if [[ $2 == deployment/* ]]; then
    counts=$replica_counts lost=0
    listed=$(kubectl_ -n "$1" get pods -l "$(selector "$@")" -o "jsonpath=$places") || return 1
    while read -r name gone; do
      if [[ -n $name && -z $gone && $dead == *" $name "* ]]; then lost=$((lost + 1)); fi
    done <<<"$listed"
  fi
  counts=$(kubectl_ -n "$1" get "$2" -o "jsonpath=$counts") || return 1
  IFS='|' read -r desired updated available <<<"$counts"
  ((lost > 0 && ${updated:-0} + lost >= ${desired:-0} && ${available:-0} + lost >= ${desired:-0}))
}

roll_out() { # NAMESPACE KIND/NAME: waits until it runs
  local since=$SECONDS until=$((SECONDS + TIMEOUT_S)) shown name status listed
  # Pods of an earlier try may be minutes away from their next start.
  listed=$(stuck_pods "$@" 2>/dev/null) || listed=
  while read -r name status; do
    if [[ -n $name ]]; then kubectl_ -n "$1" delete pod "$name" --wait=false || say "pod $name: $status"; fi
  done <<<"$listed"
  until shown=$(kubectl_ -n "$1" rollout status "$2" --timeout 3s 2>&1); do
    if runs_where_it_can "$@"; then
      shown="$2: runs, but not on nodes that are out of order"
      break
    fi
    refuse_stuck_pods "$@"
    if ((SECONDS - since >= usual_wait_s)); then waits "$2 in namespace $1: ${shown##*$'\n'}"; fi
    if ((SECONDS >= until)); then
      die "$2 in namespace $1 did not roll out within $TIMEOUT_S s at $(server): ${shown//$'\n'/; }"
    fi
    sleep 0.5
  done
  waits
  say "${shown##*$'\n'}"
}

extra_arg() { # indent name value: the map of v1beta3, the list of v1beta4
  if ((minor < 31)); then
    printf '\n%s%s: "%s"' "$1" "$2" "$3"
  else
    printf '\n%s- name: %s\n%s  value: "%s"' "$1" "$2" "$1" "$3"
  fi
}

# kubeadm's own limits, one minute for the first answers of a new API server among them, follow the caller's.
timeouts() { # NAME...: the section of v1beta4
  local name
  printf '\ntimeouts:'
  for name in "$@"; do printf '\n  %s: %ss' "$name" "$TIMEOUT_S"; done
}

kubeadm_config() { # writes $work/kubeadm-$task.yaml: admin and certificates may run at the same time
  local san sans='' certificate_key='' api=v1beta4 limits='' older_limit='' gates=''
  want TIMEOUT_S '[0-9]+'
  if ((minor < 31)); then
    api=v1beta3
    older_limit=$'\n'"  timeoutForControlPlane: ${TIMEOUT_S}s"
  else
    limits=$(timeouts controlPlaneComponentHealthCheck kubeletHealthCheck kubernetesAPICall etcdAPICall)
  fi
  want NODE_NAME "$name_form"
  want NODE_IP "$host_form"
  want ENDPOINT "($host_form):[0-9]+"
  want POD_CIDR "$cidr_form"
  want SERVICE_CIDR "$cidr_form"
  want NODE_CIDR_MASK '[0-9]{1,3}'
  for san in $CERT_SANS; do
    [[ $san =~ ^($host_form)$ ]] || die "parameter CERT_SANS: not of the expected form"
    sans+=$'\n'"  - \"$san\""
  done
  # From 1.29 on it is the default: a new member of etcd counts for the majority only once it has all data.
  if [[ $BALANCED == true ]] && ((minor < 29)); then gates=$'\n'"featureGates:"$'\n'"  EtcdLearnerMode: true"; fi
  if [[ -n ${CERTIFICATE_KEY:-} ]]; then certificate_key=$'\n'"certificateKey: \"$CERTIFICATE_KEY\""; fi
  cat >"$work/kubeadm-$task.yaml" <<END
apiVersion: kubeadm.k8s.io/$api
kind: InitConfiguration
bootstrapTokens:
- ttl: 10m0s
localAPIEndpoint:
  advertiseAddress: "$NODE_IP"
  bindPort: 6443
nodeRegistration:
  name: "$NODE_NAME"
  criSocket: $cri_socket
  kubeletExtraArgs:$(extra_arg '    ' node-ip "$NODE_IP")$certificate_key$limits
---
apiVersion: kubeadm.k8s.io/$api
kind: ClusterConfiguration
kubernetesVersion: "v$version"
controlPlaneEndpoint: "$ENDPOINT"$gates
apiServer:
  certSANs:$sans$older_limit
controllerManager:
  extraArgs:$(extra_arg '    ' node-cidr-mask-size "$NODE_CIDR_MASK")
networking:
  podSubnet: "$POD_CIDR"
  serviceSubnet: "$SERVICE_CIDR"
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
END
}

api_answers() { kubectl_ get --raw /readyz || explain api_fault; }

await_api() {
  local why
  if await "$TIMEOUT_S" api_answers; then return 0; fi
  why=$(api_fault) || true
  die "the API server at $(server) does not answer within $TIMEOUT_S s${why:+: $why}"
}

explain() { # FUNCTION: fails, with what it prints as the last line of the error
  local why
  why=$("$1") || true
  if [[ -n $why ]]; then printf '%s\n' "$why" >&2; fi
  return 1
}

# From below: each part needs the one before. Errors of its commands do not count: what they would show is not known then.
api_fault() { # prints why the API of the cluster does not answer, as far as this machine, a master, shows it
  local manifests=$root/etc/kubernetes/manifests part why code=0 others='' word name address rest silent='' own url host port
  if [[ ! -d $manifests ]]; then return 0; fi
  why=$(kubelet_fault)
  if [[ -n $why ]]; then printf '%s\n' "$why" && return 0; fi
  for part in etcd kube-apiserver; do
    if [[ ! -e $manifests/$part.yaml && -e $root/etc/kubernetes/pki/apiserver.crt ]]; then
      printf '%s does not run on this machine: %s is missing\n' "$part" "${manifests#"$root"}/$part.yaml" && return 0
    fi
  done
  url=$(sed -nE 's/^ *- --listen-metrics-urls=([^, ]+).*/\1/p' "$manifests/etcd.yaml" 2>/dev/null)
  why=$(curl -gs -m 3 --noproxy '*' "$url/health" 2>/dev/null) || code=$?
  if [[ -n $url ]] && ((code == 7)); then # of curl: no connection
    printf 'etcd does not run on this machine: nothing listens at %s\n' "$url" && return 0
  fi
  if [[ $why == *'"health":"false"'* ]]; then
    if [[ -s $balancer_conf ]]; then others=$(<"$balancer_conf"); fi
    while read -r word name address rest; do
      : "$rest"
      if [[ $word == server ]] && ! accepts "${address%:*}" 2380 2 2>/dev/null; then silent+="${silent:+, }$name"; fi
    done <<<"$others"
    why=${why##*'"reason":"'}
    printf 'etcd cannot work (%s)%s\n' "${why%%\"*}" "${silent:+: its members on $silent do not answer}" && return 0
  fi
  own=$(sed -nE 's/^ *- --advertise-address=//p' "$manifests/kube-apiserver.yaml" 2>/dev/null)
  if [[ -z $own ]]; then return 0; fi
  if ! accepts "$own" 6443 2 2>/dev/null; then
    why=$(find "$root/var/log/pods" -path '*_kube-apiserver-*' -name '*.log' 2>/dev/null | sort -V | tail -n 1)
    if [[ -n $why ]]; then why=$(sed -nE 's/^[^ ]+ std(err|out) F ([EF][0-9]{4} [^]]*\] |Error: )//p' "$why" | tail -n 1); fi
    printf 'kube-apiserver does not run on this machine%s\n' "${why:+: ${why:0:300}}" && return 0
  fi
  url=$(server) host=${url#https://} port=${host##*:} host=${host%:*} host=${host#[} host=${host%]}
  if [[ $url != https://* || ! -s $balancer_conf ]] || accepts "$host" "$port" 2 2>/dev/null; then return 0; fi
  why=
  for part in keepalived haproxy; do
    if ! systemctl is-active -q "$part"; then why+="${why:+, }$part does not run"; fi
  done
  printf 'the virtual address %s does not answer%s\n' "$host" "${why:+: on this machine, $why}"
}

# The last addon is kubeadm's last step: if it exists, the init is complete.
init_complete() { kubectl_ -n kube-system get configmap/kubeadm-config "$(last_addon)" -o name; }

last_addon() { if [[ $KUBE_PROXY == false ]]; then printf deployment/coredns; else printf daemonset/kube-proxy; fi; }

report_ca() {
  local pem
  pem=$(<"$root/etc/kubernetes/pki/ca.crt")
  report ca_cert "$pem"
}

# kubeadm waits up to ten minutes for what a kubelet that does not start would bring up, and does not say why it is not there.
with_kubelet() { # WHAT COMMAND...: as step; meanwhile and after a failure it says why kubelet does not run
  local code=0 why
  exec 7> >(watch_kubelet)
  "${@:2}" 7>&- || code=$?
  exec 7>&-
  wait "$!" || true
  if ((code == 0)); then return 0; fi
  why=$(kubelet_fault)
  if [[ -n $why ]]; then printf '%s: %s\n' "$task" "$why" >&2; fi
  doing=$1
  failed "$code" "$LINENO" "$1"
}

watch_kubelet() { # until its input ends
  local code why before=
  while true; do
    code=0
    read -r -t "$usual_wait_s" _ || code=$?
    if ((code <= 128)); then break; fi # otherwise the time was over
    why=$(kubelet_fault)
    if [[ -n $why || -z $before ]]; then waits "$why"; fi # one that ends at once is active for a moment again and again
    before=$why
  done
  waits
}

kubelet_fault() { # prints why kubelet does not run though kubeadm has configured it
  local said
  if [[ ! -e $root/var/lib/kubelet/config.yaml ]] || systemctl is-active -q kubelet; then return 0; fi
  said=$(journalctl -u kubelet -n 50 -o cat --no-pager 2>/dev/null | \
    sed -nE 's/^[EF][0-9]{4} [^]]*\] //; T; s/^"([^"]*)" err="(.*)"$/\1: \2/; p' | tail -n 1) || true
  printf 'the kubelet is not running%s\n' "${said:+: ${said:0:300}}"
}

init() {
  local -a skipped=()
  if [[ $KUBE_PROXY == false ]]; then skipped=(--skip-phases addon/kube-proxy); fi
  if marked init; then
    # No reset here: a slow API is no reason to destroy a cluster.
    await_api
  elif [[ -f $admin_conf ]] && await 5 api_answers 2>/dev/null && init_complete >/dev/null 2>&1; then
    say 'the control plane is already complete'
    mark init
  else
    if [[ -d $root/etc/kubernetes/pki || -f $root/var/lib/kubelet/config.yaml ]]; then
      say 'removing what an earlier try left'
      step 'kubeadm reset' kubeadm reset -f --cri-socket "$cri_socket"
    fi
    kubeadm_config
    with_kubelet "kubeadm init of the control plane at https://$ENDPOINT" \
      kubeadm init --config "$work/kubeadm-$task.yaml" --skip-token-print "${skipped[@]}"
    await_api
    mark init
  fi
  report_ca
}

# ---- network ---------------------------------------------------------------------------------------------------------
# CNI_MANIFEST (file beside the parameters), CNI_WORKLOADS (lines "namespace kind/name"), TIMEOUT_S

network() {
  local space workload
  step "kubectl apply of the pod network's manifest at $(server)" kubectl_ apply -f "$work/$CNI_MANIFEST"
  changed=true # apply itself finds the differences
  while read -r space workload; do
    if [[ -n $space ]]; then roll_out "$space" "$workload"; fi
  done <<<"$CNI_WORKLOADS"
}

# ---- admin -----------------------------------------------------------------------------------------------------------
# as init, with CERTIFICATE_KEY (64 hex digits, valid for two hours)

admin_manifest() {
  cat <<END
apiVersion: v1
kind: Namespace
metadata:
  name: $namespace
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: vnfm-admin
  namespace: $namespace
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: kubevnfm-vnfm-admin
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
- kind: ServiceAccount
  name: vnfm-admin
  namespace: $namespace
---
apiVersion: v1
kind: Secret
metadata:
  name: vnfm-admin-token
  namespace: $namespace
  annotations:
    kubernetes.io/service-account.name: vnfm-admin
type: kubernetes.io/service-account-token
END
}

token_exists() {
  admin_token=$(kubectl_ -n "$namespace" get secret vnfm-admin-token -o 'jsonpath={.data.token}')
  [[ -n $admin_token ]]
}

admin() {
  local until pause=0.2
  want CERTIFICATE_KEY '[0-9a-f]{64}'
  doing="kubectl apply of the service account vnfm-admin at $(server)"
  admin_manifest | kubectl_ apply -f -
  upload_certificates
  doing="reading the Secret vnfm-admin-token at $(server)"
  changed=true
  until=$((SECONDS + TIMEOUT_S))
  until token_exists; do # the token controller writes it
    ((SECONDS < until)) || die "secret $namespace/vnfm-admin-token: no token was written into it"
    sleep "$pause"
    pause=1
  done
  doing=
  report token_base64 "$admin_token"
  report_ca
}

# ---- certificates, members, remove_member, stand_down ----------------------------------------------------------------
# certificates: as init, with CERTIFICATE_KEY; members: THROUGH (words: the masters whose etcd may be asked, the first that
# answers is), TIMEOUT_S; remove_member: as members, with NODE_NAME and NODE_IP of the master that leaves

upload_certificates() { # the key is in a file, because every user of the machine can read the arguments of processes
  kubeadm_config
  step "kubeadm init phase upload-certs at $(server)" \
    kubeadm init phase upload-certs --upload-certs --skip-certificate-key-print --config "$work/kubeadm-$task.yaml"
}

certificates() {
  want CERTIFICATE_KEY '[0-9a-f]{64}'
  upload_certificates
  changed=true
}

etcdctl_() {
  local pki=/etc/kubernetes/pki/etcd
  kubectl_ -n kube-system exec "etcd-${asked:-$THROUGH}" -- \
    etcdctl --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key "$@"
}

# These say that etcdctl itself has failed, or that there is no such pod. Any other error is that of kubectl exec: the kubelet
# of the pod cannot authorize callers yet, or does not answer yet, which says nothing about etcd.
readonly not_of_exec='command terminated with exit code|\(NotFound\)'

find_etcd() { # sets $asked to the first of THROUGH whose member of etcd answers
  local complaint='' is_starting until=$((SECONDS + TIMEOUT_S))
  local -a names
  read -ra names <<<"$THROUGH"
  # the virtual address may be on its way from one master to another
  await_api
  while true; do
    is_starting=false
    for asked in "${names[@]}"; do
      want asked "$name_form"
      if complaint=$(etcdctl_ endpoint health 2>&1); then return 0; fi
      if [[ ! $complaint =~ $not_of_exec ]]; then is_starting=true; fi
    done
    if ! $is_starting || ((SECONDS >= until)); then break; fi
    sleep 1
  done
  die "etcd does not answer on any of the masters ${names[*]}: ${complaint##*$'\n'}"
}

members() { # which members etcd has, and which of them answer
  local asked listed health
  find_etcd
  doing="etcdctl member list in the pod etcd-$asked"
  listed=$(etcdctl_ member list -w simple)
  doing="etcdctl endpoint health in the pod etcd-$asked"
  # It ends with an error if one of the members does not answer, and prints the list all the same.
  health=$(etcdctl_ endpoint health --cluster -w json) || [[ $health == '['* ]]
  doing=
  report members "$listed"
  report_json health "$health"
}

remove_member() { # the member of exactly this name and peer URL; one that never started has no name
  local asked listed id state name peers rest url="https://$NODE_IP:2380"
  want NODE_NAME "$name_form"
  want NODE_IP "$host_form"
  find_etcd
  if [[ $NODE_IP == *:* ]]; then url="https://[$NODE_IP]:2380"; fi
  doing="etcdctl member list in the pod etcd-$THROUGH"
  listed=$(etcdctl_ member list -w simple)
  doing=
  while IFS=, read -r id state name peers rest; do
    : "$state $rest"
    if [[ ${peers# } != "$url" || (-n ${name# } && ${name# } != "$NODE_NAME") ]]; then continue; fi
    step "etcdctl member remove of $NODE_NAME at $url" etcdctl_ member remove "$id"
    changed=true
  done <<<"$listed"
  # the others may have to choose a leader first
  await_api
}

stand_down() { # gives the virtual address up, for good: the machine is replaced, and must not take it back when it restarts
  local unit
  for unit in keepalived haproxy; do
    if ! systemctl is-active -q "$unit" && ! systemctl is-enabled -q "$unit"; then continue; fi
    step "systemctl disable --now $unit" systemctl disable -q --now "$unit"
    changed=true
  done
}

# ---- token, revoke, join, reset --------------------------------------------------------------------------------------
# token: TOKEN_TTL_S; revoke: TOKEN_ID (its first six characters);
# join: NODE_NAME, NODE_IP, ENDPOINT, CA_CERT_HASH, TIMEOUT_S, JOIN_TOKEN (empty: only report whether the node has joined),
# CERTIFICATE_KEY (64 hex digits: it joins as a master), CONTROL_PLANE (true: as a master); reset: NODE_NAME

token() {
  local made
  want TOKEN_TTL_S '[0-9]+'
  doing="kubeadm token create at $(server)"
  made=$(kubeadm token create --ttl "${TOKEN_TTL_S}s" --kubeconfig "$admin_conf")
  doing=
  report token "$made"
  changed=true
}

revoke() {
  want TOKEN_ID '[a-z0-9]{6}'
  step "kubeadm token delete at $(server)" kubeadm token delete "$TOKEN_ID" --kubeconfig "$admin_conf"
  changed=true
}

local_api() { # ARGUMENTS...: the API server of this machine, past the balancer
  local host=$NODE_IP
  if [[ $host == *:* ]]; then host="[$host]"; fi
  kubectl_ --server "https://$host:6443" --request-timeout 5s "$@"
}

# The API server is ready only if the member of etcd on this machine takes part.
local_api_answers() { local_api get --raw /readyz || explain api_fault; }

local_api_ready() { await "$1" local_api_answers; } # SECONDS

marked_as_master() { # which is the last that kubeadm does
  local labels
  labels=$(local_api get node "$NODE_NAME" -o 'jsonpath={.metadata.labels}') &&
    [[ $labels == *'"node-role.kubernetes.io/control-plane"'* ]]
}

has_joined() {
  if [[ $CONTROL_PLANE == true ]]; then
    [[ -f $root/etc/kubernetes/kubelet.conf && -f $admin_conf ]] || return 1
    if marked join; then
      # No reset of a master that was complete: it is part of the majority of etcd.
      local_api_ready "$TIMEOUT_S" || die "the API server of $NODE_NAME is not ready within $TIMEOUT_S s"
      return 0
    fi
    local_api_ready 10 && marked_as_master
    return
  fi
  [[ -f $root/etc/kubernetes/kubelet.conf && $(<"$root/etc/kubernetes/kubelet.conf") == *"server: https://$ENDPOINT"* ]]
}

is_begun() { # whether kubeadm has begun to make a node of this machine
  local file
  # admin.conf is the first file of a further master
  for file in var/lib/kubelet/config.yaml etc/kubernetes/{bootstrap-kubelet,kubelet,admin}.conf; do
    if [[ -f $root/$file ]]; then return 0; fi
  done
  return 1
}

reset_node() {
  say 'removing what an earlier try left'
  step 'kubeadm reset' kubeadm reset -f --cri-socket "$cri_socket"
  changed=true
}

reset() { # what an interrupted join as a master has left, once the other masters have removed its member of etcd
  want NODE_NAME "$name_form"
  if marked join; then die "$NODE_NAME has joined the cluster: a complete master is not reset"; fi
  if is_begun; then reset_node; fi
}

join() {
  local api=v1beta4 limits='' older_limit='' control_plane=''
  want TIMEOUT_S '[0-9]+'
  if ((minor < 31)); then
    api=v1beta3
    older_limit=$'\n'"  timeout: ${TIMEOUT_S}s"
  else
    limits=$(timeouts controlPlaneComponentHealthCheck kubeletHealthCheck kubernetesAPICall etcdAPICall tlsBootstrap discovery)
  fi
  want NODE_NAME "$name_form"
  want NODE_IP "$host_form"
  want ENDPOINT "($host_form):[0-9]+"
  want CA_CERT_HASH 'sha256:[0-9a-f]{64}'
  if has_joined; then
    if ! marked join; then mark join; fi
    systemctl is-active -q kubelet || step 'start of the kubelet' systemctl start kubelet
    report_json joined true
    return 0
  fi
  # A master whose join was interrupted may be a member of etcd that the others need for their majority, and that they would
  # still list after a reset. So they remove it first; the caller sees to that, and calls `reset` before the next join.
  if [[ -z ${JOIN_TOKEN:-} ]] || { [[ $CONTROL_PLANE == true ]] && is_begun; }; then
    report_json joined false
    return 0
  fi
  if is_begun; then reset_node; fi
  want JOIN_TOKEN '[a-z0-9]{6}\.[a-z0-9]{16}'
  if [[ $CONTROL_PLANE == true ]]; then
    want CERTIFICATE_KEY '[0-9a-f]{64}'
    control_plane="
controlPlane:
  certificateKey: \"$CERTIFICATE_KEY\"
  localAPIEndpoint:
    advertiseAddress: \"$NODE_IP\"
    bindPort: 6443"
  fi
  cat >"$work/join.yaml" <<END
apiVersion: kubeadm.k8s.io/$api
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: "$ENDPOINT"
    token: "$JOIN_TOKEN"
    caCertHashes:
    - "$CA_CERT_HASH"$older_limit
nodeRegistration:
  name: "$NODE_NAME"
  criSocket: $cri_socket
  kubeletExtraArgs:$(extra_arg '    ' node-ip "$NODE_IP")$control_plane$limits
END
  with_kubelet "kubeadm join to https://$ENDPOINT" kubeadm join --config "$work/join.yaml"
  if [[ $CONTROL_PLANE == true ]]; then
    local_api_ready "$TIMEOUT_S" || die "kubeadm join succeeded, but the API server of $NODE_NAME is not ready"
  fi
  has_joined || die "kubeadm join succeeded, but the kubelet has no access to https://$ENDPOINT"
  mark join
  report_json joined true
}

# ---- label, verify ---------------------------------------------------------------------------------------------------
# label: LABELS (lines "key=value key=value|node node"), TIMEOUT_S; verify: NODES (words), CNI_WORKLOADS, KUBE_PROXY, TIMEOUT_S

label() {
  local labels nodes
  local -a words names
  while IFS='|' read -r labels nodes; do
    if [[ -z $labels ]]; then continue; fi
    read -ra words <<<"$labels"
    read -ra names <<<"$nodes"
    # a kubelet registers its node a moment after it has received its certificate
    await "$TIMEOUT_S" kubectl_ label --overwrite nodes "${names[@]}" "${words[@]}" ||
      die "nodes $nodes: the labels $labels could not be set at $(server) within $TIMEOUT_S s"
    changed=true
  done <<<"$LABELS"
}

late_nodes() { # NAMES...: prints which of them are not Ready, and why
  local states name ready rest late=''
  # of all: kubectl shows one that is asked for by name in another form than several
  states=$(kubectl_ get nodes -o "jsonpath=$readiness") || return 1
  while read -r name ready rest; do
    if [[ $ready != True && " $* " == *" ${name%:} "* ]]; then late+="${late:+; }$name ${ready:-Unknown} $rest"; fi
  done <<<"$states"
  printf '%s' "$late"
}

verify() {
  local listed space workload since until needed=$CNI_WORKLOADS
  local -a names
  if [[ $KUBE_PROXY != false ]]; then needed="kube-system daemonset/kube-proxy"$'\n'$needed; fi
  read -ra names <<<"$NODES"
  await "$TIMEOUT_S" kubectl_ get nodes "${names[@]}" -o name ||
    die "not all nodes have registered at $(server) within $TIMEOUT_S s: ${names[*]}"
  since=$SECONDS until=$((SECONDS + TIMEOUT_S))
  until kubectl_ wait --for condition=Ready --timeout 3s nodes "${names[@]}" >/dev/null 2>&1; do
    # The pods that a node needs until it is Ready: where one of them cannot start, time does not help.
    while read -r space workload; do
      if [[ -n $space ]]; then refuse_stuck_pods "$space" "$workload"; fi
    done <<<"$needed"
    if ((SECONDS >= until || SECONDS - since >= usual_wait_s)); then
      listed=$(late_nodes "${names[@]}") || listed="${names[*]}"
      if ((SECONDS >= until)); then die "not all nodes are Ready at $(server) within $TIMEOUT_S s: $listed"; fi
      waits "not all nodes are Ready: $listed"
    fi
    sleep 0.5
  done
  waits
  # The nodes that joined meanwhile have pods of these, too; and a node can be Ready without them.
  while read -r space workload; do
    if [[ -n $space ]]; then roll_out "$space" "$workload"; fi
  done <<<"$needed"$'\n''kube-system deployment/coredns'
  doing="kubectl get nodes at $(server)"
  listed=$(kubectl_ get nodes -o json)
  report_json nodes "$listed"
}

# ---- facts, hosts ----------------------------------------------------------------------------------------------------
# facts: TIMEOUT_S; hosts: HOSTS_ENTRIES (lines "address name")

facts() { # what a cluster that exists says of itself
  local text
  await_api
  text=$(kubectl_ -n kube-system get configmap kubeadm-config -o 'jsonpath={.data.ClusterConfiguration}')
  report configuration "$text"
  text=$(kubectl_ get nodes -o json)
  report_json nodes "$text"
  report_ca
}

hosts() {
  hosts_block
}

# ---- cordon, uncordon, drain, delete ---------------------------------------------------------------------------------
# cordon, uncordon: NODES (words); drain: NODE_NAME, TIMEOUT_S (of this call), FORCE, DELETE_EMPTYDIR_DATA (true or false);
# delete: NODE_NAME, TIMEOUT_S

readonly cordon_note=kubevnfm/cordoned-for
readonly ready_status='{.status.conditions[?(@.type=="Ready")].status}'

present_nodes() { # sets the array $present to those of NODES that exist
  local listed name
  local -a names
  read -ra names <<<"$NODES"
  present=()
  for name in "${names[@]}"; do
    want name "$name_form"
    listed=$(kubectl_ get node "$name" --ignore-not-found -o name)
    if [[ -n $listed ]]; then present+=("$name"); fi
  done
}

cordon() {
  local name state
  local -a present
  present_nodes
  for name in "${present[@]}"; do
    state=$(kubectl_ get node "$name" -o 'jsonpath={.spec.unschedulable}')
    if [[ $state == true ]]; then continue; fi
    # Noted first: only a node that was cordoned here is uncordoned after a failure, not one that people have cordoned.
    kubectl_ annotate --overwrite node "$name" "$cordon_note=$OWNER"
    kubectl_ cordon "$name"
    changed=true
  done
}

uncordon() {
  local name note
  local -a present
  present_nodes
  for name in "${present[@]}"; do
    note=$(kubectl_ get node "$name" -o "jsonpath={.metadata.annotations.$cordon_note}")
    if [[ $note != "$OWNER" ]]; then continue; fi
    kubectl_ uncordon "$name"
    kubectl_ annotate node "$name" "$cordon_note-"
    changed=true
  done
}

# kubectl has two clocks for its --timeout. The second decides for a pod that was evicted and has not ended (seen with 1.34).
readonly drain_time_over='global timeout reached|error when waiting for pod .*: (context deadline exceeded|timed out waiting)'

drain() { # evicts for TIMEOUT_S at most; the caller repeats it until the node is drained
  local listed output state code=0
  local -a options=(--ignore-daemonsets --timeout "${TIMEOUT_S}s")
  want FORCE 'true|false'
  want DELETE_EMPTYDIR_DATA 'true|false'
  if [[ $FORCE == true ]]; then options+=(--force); fi
  if [[ $DELETE_EMPTYDIR_DATA == true ]]; then options+=(--delete-emptydir-data); fi
  listed=$(kubectl_ get node "$NODE_NAME" --ignore-not-found -o name)
  if [[ -z $listed ]]; then
    report_json drained true
    return 0
  fi
  output=$(kubectl_ drain "$NODE_NAME" "${options[@]}" 2>&1) || code=$?
  printf '%s\n' "$output"
  if [[ $output == *'evicting pod'* ]]; then changed=true; fi
  if ((code == 0)); then
    report_json drained true
    return 0
  fi
  if [[ ! $output =~ $drain_time_over ]]; then
    # On a node that runs, kubectl's doubts (pods without controller) are for people. The pods of a dead one are lost anyway.
    state=$(kubectl_ get node "$NODE_NAME" -o "jsonpath=$ready_status")
    [[ $state != True ]] || die "kubectl drain: ${output##*error: }"
  fi
  state=$(kubectl_ get node "$NODE_NAME" -o json)
  report_json node "$state"
  listed=$(kubectl_ get pods --all-namespaces --field-selector "spec.nodeName=$NODE_NAME" -o json)
  report_json pods "$listed"
  report output "$output"
  report_json drained false
}

delete() {
  local listed ready
  listed=$(kubectl_ get node "$NODE_NAME" --ignore-not-found -o name)
  if [[ -z $listed ]]; then return 0; fi
  ready=$(kubectl_ get node "$NODE_NAME" -o "jsonpath=$ready_status")
  if [[ $ready == Unknown ]]; then
    # The machine is dead and confirms the end of no pod. With the taint, their volumes are detached at once; without it,
    # after six minutes (Kubernetes: non-graceful node shutdown).
    kubectl_ taint --overwrite node "$NODE_NAME" node.kubernetes.io/out-of-service=nodeshutdown:NoExecute
    kubectl_ delete pods --all-namespaces --field-selector "spec.nodeName=$NODE_NAME" --force --grace-period 0 \
      --wait=false --ignore-not-found
  fi
  kubectl_ delete node "$NODE_NAME" --ignore-not-found --timeout "${TIMEOUT_S}s"
  changed=true
}

# ---- the call --------------------------------------------------------------------------------------------------------

read_arguments() { # [--params FILE] [--result FILE]: sets params, result and work, the folder of FILE
  while (($# > 0)); do
    case $1 in
      --params) params=${2:?--params: a file expected} && shift 2 ;;
      --result) result=${2:?--result: a file expected} && shift 2 ;;
      *) die "unknown option $1" ;;
    esac
  done
  [[ -f $params ]] || die "--params: no file ${params:-given}"
  case $params in /*) ;; *) params=./$params ;; esac
  readonly work=${params%/*}
}

readonly url_form='https?://[^[:space:]"\\]+'

use_proxies() { # HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST
  local name
  for name in HTTP_PROXY_URL HTTPS_PROXY_URL; do
    if [[ -n ${!name} ]]; then want "$name" "$url_form"; fi
  done
  [[ $NO_PROXY_LIST =~ ^[A-Za-z0-9.,:/*_-]*$ ]] || die "parameter NO_PROXY_LIST: hosts, addresses and networks expected"
  if [[ -n $HTTP_PROXY_URL ]]; then export http_proxy=$HTTP_PROXY_URL; fi # curl reads only the lower-case name
  if [[ -n $HTTPS_PROXY_URL ]]; then export https_proxy=$HTTPS_PROXY_URL; fi
  if [[ -n $HTTP_PROXY_URL$HTTPS_PROXY_URL ]]; then export no_proxy=$NO_PROXY_LIST; fi
}

work_alone() { # NAME: a call whose connection was lost may still be running; wait for it rather than work concurrently
  [[ -d $root/run ]] || mkdir -p "$root/run"
  exec 9>"$root/run/kubevnfm-$1.lock"
  flock -w 120 9 || die 'an earlier call of this script is still running on the machine'
}

# A script that uses these functions reads this file and has a main part of its own.
if [[ ${BASH_SOURCE[0]} != "$0" ]]; then return 0; fi

# ---- main ------------------------------------------------------------------------------------------------------------

task=${1:-}
case $task in
  prepare | init | network | admin | token | revoke | join | label | verify) shift ;;
  facts | hosts | cordon | uncordon | drain | delete) shift ;;
  balance | certificates | members | remove_member | reset | stand_down) shift ;;
  *)
    printf 'usage: %s TASK --params FILE [--result FILE]; the tasks are listed at the top of the file\n' "$0" >&2
    exit 64
    ;;
esac
read_arguments "$@"

: "${OWNER:=}" "${KUBERNETES_VERSION:=}" "${HOSTS_ENTRIES:=}" "${HTTP_PROXY_URL:=}" "${HTTPS_PROXY_URL:=}" \
  "${NO_PROXY_LIST:=}" "${APT_REPOSITORY:=}" "${APT_KEY_URL:=}" "${IMAGE_MIRROR:=}" "${CERT_SANS:=}" "${LABELS:=}" \
  "${NODES:=}" "${CNI_WORKLOADS:=}" "${TIMEOUT_S:=600}" "${BALANCED:=}" "${MASTERS:=}" "${PREFIX_LENGTH:=}" "${CONTROL_PLANE:=}" "${KUBE_PROXY:=true}"
# shellcheck disable=SC1090 # the caller's file
. "$params"
readonly version=${KUBERNETES_VERSION:-1.31.4}
[[ $version =~ ^1\.([0-9]+)\.[0-9]+$ ]] || die "parameter KUBERNETES_VERSION: 1.<minor>.<patch> expected"
readonly minor=${BASH_REMATCH[1]}
for name in APT_REPOSITORY APT_KEY_URL IMAGE_MIRROR; do
  if [[ -n ${!name} ]]; then want "$name" "$url_form"; fi
done
readonly apt_repository=${APT_REPOSITORY:-https://pkgs.k8s.io/core:/stable:/v1.$minor/deb/}
readonly apt_key=${APT_KEY_URL:-${apt_repository%/}/Release.key}
use_proxies

exec </dev/null

case $task in # calls that only use the API may run concurrently
  prepare | balance | stand_down | init | join | reset | hosts) lock=node ;;
  drain | delete)
    want NODE_NAME "$name_form"
    lock=$task-$NODE_NAME
    ;;
  *) lock=$task ;;
esac
work_alone "$lock"

begun=true
"$task"
write_result ",\"changed\":$changed$fields"
