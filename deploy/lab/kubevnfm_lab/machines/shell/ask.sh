#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# A stand-in program: sends its name, arguments and environment to the lab, and repeats output and exit status from there.
LC_ALL=C IFS=
exec 3<>"/dev/tcp/127.0.0.1/@PORT@" || exit 126
printf '%s\0' '@TOKEN@' call "${LAB_PROGRAM:-$0}" "$KUBEVNFM_SYSROOT" "$PWD" "$#" "$@" "USER=$USER" "HOME=$HOME" \
  "KUBECONFIG=$KUBECONFIG" "SUDO_USER=$SUDO_USER" "http_proxy=${http_proxy-}" "https_proxy=${https_proxy-}" '' >&3
while IFS=' ' read -r -u 3 what first err out rest; do
  case $what in
    stdin) # the lab reads the input over a connection of its own, which ends with the input
      exec 4<>"/dev/tcp/127.0.0.1/@PORT@" && printf '%s\0' '@TOKEN@' stdin "$first" >&4 && cat >&4
      exec 4>&- ;;
    exit) # first: exit status; err, out: bytes of both; rest 1: output follows until the connection ends
      if (( err )); then read -r -N "$err" -u 3 text; printf '%s' "$text" >&2; fi
      if (( out )); then read -r -N "$out" -u 3 text; printf '%s' "$text"; fi
      if (( rest )); then cat <&3; fi
      exit "$first" ;;
  esac
done
exit 137
