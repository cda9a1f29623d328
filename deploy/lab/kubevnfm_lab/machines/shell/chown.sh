#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# chown, chgrp: the user who runs the lab owns every file of a machine, so nothing changes; missing files are errors.
name=${0##*/}; seen=; code=0
for argument; do
  case $argument in
    --reference=*) seen=1 ;;
    -*) ;;
    *)
      if [[ ! $seen ]]; then seen=1
      elif [[ ! -e $argument && ! -L $argument ]]; then
        printf "%s: cannot access '%s': No such file or directory\n" "$name" "$argument" >&2; code=1
      fi ;;
  esac
done
exit "$code"
