#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# curl, wget: the host's program for files and loopback addresses; the lab answers for any other address.
name=${0##*/}
[[ $name == curl ]] && own='@HOST_CURL@' || own='@HOST_WGET@'
outside='' local=()
for argument; do
  case $argument in
    127.*|localhost*|http://127.*|https://127.*|http://localhost*|https://localhost*|http://\[::1\]*|https://\[::1\]*|file://*) ;;
    http://*|https://*|ftp://*)
      host=${argument#*://} host=${host%%/*} found=
      while IFS=' ' read -r address names; do
        if [[ $address == 127.* && " $names " == *" ${host%%:*} "* ]]; then found=$address; fi
      done <"$KUBEVNFM_SYSROOT/etc/hosts"
      if [[ ! $found || $name != curl ]]; then outside=1; continue; fi
      port=${host##*:}
      if [[ $port == "$host" ]]; then [[ $argument == https:* ]] && port=443 || port=80; fi
      local+=(--resolve "${host%%:*}:$port:$found") ;;
  esac
done
if [[ ! $outside && -x $own ]]; then
  unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
  exec "$own" "${local[@]}" "$@"
fi
LAB_PROGRAM=$0 exec '@ASK@' "$@"
