#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in where its bash lies
# chown, chgrp: nobody owns anything in a machine's folder but the user who runs the lab; missing files are errors.
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
