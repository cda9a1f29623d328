#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# id: root is 0 and the others are 1000, under any user of the lab.
if [[ ${USER:-root} == root ]]; then number=0; else number=1000; fi
case "$*" in
  -u|-g|-G|-ur|-gr) echo "$number" ;;
  -un|-gn|-Gn|-nu) echo "${USER:-root}" ;;
  '') printf 'uid=%d(%s) gid=%d(%s) groups=%d(%s)\n' "$number" "$USER" "$number" "$USER" "$number" "$USER" ;;
  *)
    for name; do :; done
    if [[ $name == root || -d $KUBEVNFM_SYSROOT/home/$name ]]; then
      [[ $name == root ]] && number=0 || number=1000
      case $1 in -u|-g) echo "$number" ;; *) printf 'uid=%d(%s) gid=%d(%s) groups=%d(%s)\n' "$number" "$name" "$number" "$name" "$number" "$name" ;; esac
    else
      printf "id: '%s': no such user\n" "$name" >&2; exit 1
    fi ;;
esac
