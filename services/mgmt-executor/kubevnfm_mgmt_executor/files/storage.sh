#!/usr/bin/env bash
#
# The storage server of a cluster and its persistent volumes, one task per call. Every task checks first and changes only
# what is missing.
#
#   bash storage.sh <task> --params FILE [--result FILE]
#
# Tasks      on the storage server:    disks  exports
#            on a node of the cluster: nfs_client
#            on a master:              register  listed  reserve  release
# --params, --result   as those of install_k8s_cluster.sh, whose functions this script uses: it stands beside as library.sh
# shellcheck disable=SC2034,SC2154 # variables of the library
set -Eeuo pipefail
# shellcheck disable=SC1091 # the file is there on the machine
. "${0%/*}/library.sh"

readonly path_form='/[A-Za-z0-9._/-]+'
readonly volume_form='[a-z0-9]([a-z0-9.-]*[a-z0-9])?'

supported_storage_system() {
  local system
  read_system
  case $system in
    'ubuntu 20.04' | 'ubuntu 22.04' | 'ubuntu 24.04' | 'debian 12') ;;
    *) die "operating system $system: Ubuntu 20.04, 22.04 or 24.04, or Debian 12 expected" ;;
  esac
}

install_packages() { # NAME: the package of that name
  repair_packages
  step 'apt-get update' apt_get update
  step "installation of $1" apt_get install -y --no-install-recommends "$1"
  changed=true
}

# ---- disks -----------------------------------------------------------------------------------------------------------
# DISKS (lines "volume-id mount-point name"), TIMEOUT_S

# A disk has the Cinder id of its volume as serial number, of which QEMU cuts a virtio disk's after 20 characters. Its letter
# says nothing: the order in which a machine finds its disks can change at each boot.
find_disk() { # VOLUME-ID: sets $disk
  local name
  for name in "virtio-${1:0:20}" "scsi-0QEMU_QEMU_HARDDISK_$1" "scsi-0QEMU_QEMU_HARDDISK_${1:0:20}"; do
    disk=$root/dev/disk/by-id/$name
    if [[ -e $disk ]]; then return 0; fi
  done
  printf 'no disk has the serial number %s\n' "${1:0:20}" >&2
  return 1
}

probe() { # DISK NAME: sets $kind and $uuid of its file system; both are empty if the disk holds nothing at all
  local listed code=0 name value usage=''
  kind='' uuid=''
  # blkid has one exit status for a disk that holds nothing and for one that it cannot read
  head -c 1048576 "$1" >/dev/null || die "volume $2: its disk cannot be read, so nothing is known of what it holds"
  listed=$(blkid -p -o export "$1" 2>&1) || code=$?
  if ((code == 2)) && [[ -z $listed ]]; then return 0; fi
  ((code == 0)) || die "volume $2: blkid cannot say what its disk holds, so it is not formatted: ${listed//$'\n'/; }"
  while IFS='=' read -r name value; do
    case $name in TYPE) kind=$value ;; UUID) uuid=$value ;; USAGE) usage=$value ;; esac
  done <<<"$listed"
  if [[ -z $kind || -z $uuid || (-n $usage && $usage != filesystem) ]]; then
    die "volume $2: its disk holds no file system, but is not empty, so it is not formatted: ${listed//$'\n'/; }"
  fi
}

own_block() { # FILE LINES: writes the lines as the block of a file that is kubevnfm's, and leaves all others as they are
  local line other='' inside=false
  if [[ -f $1 ]]; then
    while IFS= read -r line || [[ -n $line ]]; do
      case $line in
        '# kubevnfm begin') inside=true ;;
        '# kubevnfm end') inside=false ;;
        *) $inside || other+=$line$'\n' ;;
      esac
    done <"$1"
  fi
  put "$1" 644 "$other# kubevnfm begin"$'\n'"$2"$'\n''# kubevnfm end'
}

mounted() { # MOUNT-POINT: sets $source
  source=$(findmnt -n -o SOURCE --mountpoint "$1")
}

disks() {
  local id mount name disk kind uuid source table=''
  want TIMEOUT_S '[0-9]+'
  supported_storage_system
  booted
  # All are found and probed before the first one is changed.
  while read -r id mount name; do
    [[ $id =~ ^[0-9a-f-]{36}$ && $mount =~ ^$path_form$ ]] ||
      die 'parameter DISKS: lines of a volume id, a mount point and a name expected'
    await "$TIMEOUT_S" find_disk "$id" || die "volume $name: its disk did not appear within $TIMEOUT_S s"
    find_disk "$id"
    probe "$disk" "$name"
    if mounted "$mount" && [[ $(readlink -f "$root$source") != "$(readlink -f "$disk")" ]]; then
      die "volume $name: $source is mounted at $mount already"
    fi
  done <<<"$DISKS"
  while read -r id mount name; do
    find_disk "$id"
    probe "$disk" "$name"
    if [[ -z $kind ]]; then
      step "mkfs.ext4 of volume $name" mkfs.ext4 -q "$disk"
      changed=true
      probe "$disk" "$name"
      [[ -n $uuid ]] || die "volume $name: mkfs.ext4 succeeded, but its disk holds no file system"
      say "volume $name: formatted, because it held nothing"
    else
      say "volume $name: its file system ($kind) stays as it is"
    fi
    # By UUID, as letters change; nofail, so that a lost volume does not keep the machine from booting.
    table+="UUID=$uuid $mount $kind defaults,nofail,x-systemd.before=nfs-server.service 0 2"$'\n'
  done <<<"$DISKS"
  own_block "$root/etc/fstab" "${table%$'\n'}"
  step 'systemctl daemon-reload' systemctl daemon-reload
  while read -r id mount name; do
    if mounted "$mount"; then continue; fi
    find_disk "$id"
    mkdir -p "$root$mount"
    step "mount of volume $name at $mount" mount "$mount"
    mounted "$mount" || die "volume $name: mount succeeded, but nothing is mounted at $mount"
    [[ $(readlink -f "$root$source") == "$(readlink -f "$disk")" ]] || die "volume $name: $source is mounted at $mount"
    changed=true
  done <<<"$DISKS"
  mark prepare
}

# ---- exports ---------------------------------------------------------------------------------------------------------
# EXPORTS (lines "folder client mount-point"), HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST

exports() {
  local folder client mount text='' listed place rest source present=$'\n'
  supported_storage_system
  while read -r folder client mount; do
    [[ $folder =~ ^$path_form$ && $mount =~ ^$path_form$ && $client =~ ^[A-Za-z0-9.:/-]+$ ]] ||
      die 'parameter EXPORTS: lines of a folder, a client and a mount point expected'
    # Otherwise the folder would be made, and exported, on the machine's own disk.
    mounted "$mount" || die "$folder cannot be exported: nothing is mounted at $mount"
  done <<<"$EXPORTS"
  apt_proxy
  if ! command -v exportfs >/dev/null; then install_packages nfs-kernel-server; fi
  while read -r folder client mount; do
    if [[ ! -d $root$folder ]]; then
      mkdir -p "$root$folder"
      changed=true
    fi
    # All users of the clients write as this one, so that pods can, whatever user they run as.
    step "chown of $folder" chown 65534:65534 "$root$folder"
    # mountpoint: after a boot without the disk, the folder of the machine's own disk is not exported in its place.
    text+="$folder $client(rw,sync,no_subtree_check,all_squash,mountpoint=$mount)"$'\n'
  done <<<"$EXPORTS"
  put "$root/etc/exports.d/vnfm-$OWNER.exports" 644 "${text%$'\n'}"
  systemctl is-enabled -q nfs-server || step 'systemctl enable of nfs-server' systemctl enable -q nfs-server
  if ! systemctl is-active -q nfs-server; then
    step 'start of nfs-server' systemctl start nfs-server
    changed=true
  fi
  step 'exportfs -ra' exportfs -ra
  doing='exportfs -s'
  listed=$(exportfs -s)
  doing=
  while read -r place rest; do
    : "$rest"
    present+=$place$'\n'
  done <<<"$listed"
  while read -r folder client mount; do
    [[ $present == *$'\n'"$folder"$'\n'* ]] || die "$folder is not exported: exportfs -s lists ${listed//$'\n'/; }"
  done <<<"$EXPORTS"
}

# ---- nfs_client ------------------------------------------------------------------------------------------------------
# HTTP_PROXY_URL, HTTPS_PROXY_URL, NO_PROXY_LIST

nfs_client() { # by which the kubelet mounts the volumes
  apt_proxy
  if ! command -v mount.nfs >/dev/null; then install_packages nfs-common; fi
  command -v mount.nfs >/dev/null || die 'nfs-common is installed, but there is no mount.nfs'
}

# ---- register --------------------------------------------------------------------------------------------------------
# VOLUMES (words: names of PersistentVolumes), TIMEOUT_S; beside FILE: volumes.json, their manifests

names_of_volumes() { # sets the array $names
  local name
  read -ra names <<<"$VOLUMES"
  ((${#names[@]} > 0)) || die 'parameter VOLUMES: names of PersistentVolumes expected'
  for name in "${names[@]}"; do
    [[ $name =~ ^$volume_form$ ]] || die 'parameter VOLUMES: names of PersistentVolumes expected'
  done
}

is_usable() { # NAME
  local phase
  phase=$(kubectl_ get persistentvolume "$1" -o 'jsonpath={.status.phase}')
  case $phase in Available | Bound) return 0 ;; esac
  printf 'its phase is %s\n' "${phase:-unknown}" >&2
  return 1
}

register() {
  local name output
  local -a names
  names_of_volumes
  doing="kubectl apply of the PersistentVolumes at $(server)"
  output=$(kubectl_ apply -f "$work/volumes.json")
  doing=
  printf '%s\n' "$output"
  case $output in *' created'* | *' configured'*) changed=true ;; esac
  for name in "${names[@]}"; do
    await "$TIMEOUT_S" is_usable "$name" ||
      die "PersistentVolume $name is neither Available nor Bound within $TIMEOUT_S s at $(server)"
  done
  listed
}

# ---- listed, reserve, release ----------------------------------------------------------------------------------------
# listed: none; reserve: RESERVED (lines "name resourceVersion"); release: VOLUMES (words), TIMEOUT_S

listed() { # all of the cluster
  local text
  doing="kubectl get of the PersistentVolumes at $(server)"
  text=$(kubectl_ get persistentvolumes -o json)
  doing=
  report_json volumes "$text"
}

# A claim that does not exist has taken the volume then, so no other can. With its resourceVersion, the change is refused if
# a claim was faster.
readonly own_claim='{"apiVersion":"v1","kind":"PersistentVolumeClaim","namespace":"kubevnfm-system","name":"kubevnfm-heal"}'

reserve() {
  local name revision output failure=''
  local -a reserved=()
  while read -r name revision; do
    [[ $name =~ ^$volume_form$ && $revision =~ ^[0-9]+$ ]] ||
      die 'parameter RESERVED: lines of a name and a resourceVersion expected'
    if output=$(kubectl_ patch persistentvolume "$name" --type merge \
      -p "{\"metadata\":{\"resourceVersion\":\"$revision\"},\"spec\":{\"claimRef\":$own_claim}}" 2>&1); then
      reserved+=("$name")
    else
      failure="PersistentVolume $name has changed meanwhile: ${output//$'\n'/; }"
      break
    fi
  done <<<"$RESERVED"
  if [[ -z $failure ]]; then
    changed=true
    return 0
  fi
  for name in "${reserved[@]}"; do
    kubectl_ patch persistentvolume "$name" --type merge -p '{"spec":{"claimRef":null}}'
  done
  die "$failure"
}

release() {
  local -a names
  names_of_volumes
  # --timeout: kubectl waits until they are gone.
  step "kubectl delete of the PersistentVolumes at $(server)" \
    kubectl_ delete persistentvolumes "${names[@]}" --ignore-not-found --timeout "${TIMEOUT_S}s"
  changed=true
}

# ---- main ------------------------------------------------------------------------------------------------------------

task=${1:-}
case $task in
  disks | exports | nfs_client | register | listed | reserve | release) shift ;;
  *)
    printf 'usage: %s TASK --params FILE [--result FILE]; the tasks are listed at the top of the file\n' "$0" >&2
    exit 64
    ;;
esac
read_arguments "$@"
: "${OWNER:=}" "${HTTP_PROXY_URL:=}" "${HTTPS_PROXY_URL:=}" "${NO_PROXY_LIST:=}" "${TIMEOUT_S:=60}" "${DISKS:=}" "${EXPORTS:=}" \
  "${VOLUMES:=}" "${RESERVED:=}"
# shellcheck disable=SC1090 # the caller's file
. "$params"
use_proxies
export DEBIAN_FRONTEND=noninteractive
exec </dev/null
work_alone storage
# shellcheck disable=SC2034 # the library reads it
begun=true
"$task"
write_result ",\"changed\":$changed${fields-}"
