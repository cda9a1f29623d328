#!@BASH@
# shellcheck shell=bash disable=SC2239  # the lab fills in the path of bash
# sudo: the same shell with the environment of another user. Asks for a password if sudoers requires one.
user=root; home=; keep=; ask=; from_stdin=; prompt='[sudo] password for %p: '; login=; shell=
usage() { printf 'usage: sudo -h | -K | -k | -V\nusage: sudo [-ABkNnS] [-u user] [VAR=value] [-i|-s] [<command>]\n' >&2; exit 1; }
assign=()
while (( $# )); do
  case $1 in
    --) shift; break ;;
    --non-interactive) ask=never ;;
    --stdin) from_stdin=1 ;;
    --preserve-env*) keep=1 ;;
    --set-home) home=1 ;;
    --login) login=1 ;;
    --user=*) user=${1#*=} ;;
    --user) shift; user=$1 ;;
    -V) echo 'Sudo version 1.9.9'; exit 0 ;;
    -*)
      flags=${1#-}
      while [[ $flags ]]; do
        flag=${flags:0:1}; flags=${flags:1}
        case $flag in
          n) ask=never ;; S) from_stdin=1 ;; E) keep=1 ;; H) home=1 ;; i) login=1 ;; s) shell=1 ;;
          k|K|A|b|B|N|P) ;;
          v|l) listing=1 ;;
          u|g|p|h|C|r|t|T|U|D|R)
            value=$flags; flags=
            if [[ ! $value ]]; then shift; value=$1; fi
            case $flag in u) user=$value ;; p) prompt=$value ;; esac ;;
          *) printf 'sudo: invalid option -- '"'%s'"'\n' "$flag" >&2; usage ;;
        esac
      done ;;
    [A-Za-z_]*=*) assign+=("$1") ;;
    *) break ;;
  esac
  shift
done
while [[ ${1-} == [A-Za-z_]*=* ]]; do assign+=("$1"); shift; done
caller=$USER
if [[ $caller != root ]]; then
  rule=
  for file in "$KUBEVNFM_SYSROOT"/etc/sudoers.d/*; do
    [[ -r $file ]] || continue
    while read -r who rest; do
      [[ $who == "$caller" ]] && rule=$rest
    done < "$file"
  done
  if [[ ! $rule ]]; then
    printf '%s is not in the sudoers file.  This incident will be reported.\n' "$caller" >&2; exit 1
  fi
  if [[ $rule != *NOPASSWD:* ]]; then
    if [[ $ask ]]; then echo 'sudo: a password is required' >&2; exit 1; fi
    if [[ ! $from_stdin ]]; then
      echo 'sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper' >&2
      echo 'sudo: a password is required' >&2; exit 1
    fi
    tries=0
    while :; do
      printf '%s' "${prompt//%p/$caller}" >&2
      if ! IFS= read -r password; then
        printf '\n' >&2
        if (( tries )); then printf 'sudo: no password was provided\nsudo: %d incorrect password attempt%s\n' "$tries" "$([[ $tries == 1 ]] || echo s)" >&2
        else printf 'sudo: no password was provided\nsudo: a password is required\n' >&2; fi
        exit 1
      fi
      # The password travels over the lab's own socket, never on a command line.
      exec 3<>"/dev/tcp/127.0.0.1/@PORT@" || exit 1
      printf '%s\0' '@TOKEN@' call sudo-password "$KUBEVNFM_SYSROOT" "$PWD" 2 "$caller" "$password" '' >&3
      IFS=' ' read -r -u 3 what code rest
      exec 3>&-
      [[ $what == exit && $code == 0 ]] && break
      tries=$((tries + 1))
      if (( tries == 3 )); then echo 'sudo: 3 incorrect password attempts' >&2; exit 1; fi
      echo 'Sorry, try again.' >&2
    done
  fi
fi
unset password
if [[ ! -d $KUBEVNFM_SYSROOT/home/$user && $user != root ]]; then
  printf 'sudo: unknown user %s\nsudo: error initializing audit plugin sudoers_audit\n' "$user" >&2; exit 1
fi
if [[ ! $keep ]]; then
  for name in $(compgen -e); do
    case $name in
      KUBEVNFM_SYSROOT|PATH|TERM|LANG|LC_*|PWD|OLDPWD|SHELL|SHLVL|_) ;;
      *) unset "$name" ;;
    esac
  done
fi
if [[ ! $keep || $home || ! $HOME ]]; then
  if [[ $user == root ]]; then HOME=$KUBEVNFM_SYSROOT/root; else HOME=$KUBEVNFM_SYSROOT/home/$user; fi
fi
USER=$user; LOGNAME=$user; SUDO_USER=$caller; SUDO_COMMAND=$*
export HOME USER LOGNAME SUDO_USER SUDO_COMMAND
for pair in "${assign[@]}"; do export "${pair?}"; done
if [[ $login ]]; then cd "$HOME" || exit 1; fi
if [[ ${listing-} ]]; then exit 0; fi
if (( ! $# )); then
  [[ $login || $shell ]] || usage
  exec @BASH@ --norc
fi
if [[ $login || $shell ]]; then printf -v line '%q ' "$@"; exec @BASH@ -c "$line"; fi
if ! type -P -- "$1" >/dev/null; then printf 'sudo: %s: command not found\n' "$1" >&2; exit 1; fi
exec "$@"
