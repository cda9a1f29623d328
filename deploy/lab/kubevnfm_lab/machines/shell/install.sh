#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# install: the host's program, without owner and group, which only root could set.
arguments=()
while (( $# )); do
  case $1 in
    -o|-g|--owner|--group) shift ;;
    -o*|-g*|--owner=*|--group=*) ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
exec @HOST_INSTALL@ "${arguments[@]}"
