#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in where its bash lies
# install: the host's own, less the owner and group, which only root could give.
kept=()
while (( $# )); do
  case $1 in
    -o|-g|--owner|--group) shift ;;
    -o*|-g*|--owner=*|--group=*) ;;
    *) kept+=("$1") ;;
  esac
  shift
done
exec @HOST_INSTALL@ "${kept[@]}"
