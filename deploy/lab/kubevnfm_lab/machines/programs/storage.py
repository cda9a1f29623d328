"""mount, umount, findmnt, blkid, mkfs, exportfs and showmount."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options
from kubevnfm_lab.machines.storage import MountRefused, Volume, fstab_entries

USAGES: Mapping[str, str] = {"LVM2_member": "raid", "crypto_LUKS": "crypto", "swap": "other"}
"""The use of a volume that holds no file system, in the words of libblkid."""


def _device(call: Call, name: str) -> tuple[str, Volume]:
    """Return device and volume for a name as programs give it, through links and with the root in front."""
    found = call.machine.disks.find(_plain(call, name))
    if found is None:
        found = call.machine.disks.find(call.machine.shown(os.path.realpath(call.path(name))))
    if found is None:
        raise LookupError(name)
    return found


def _plain(call: Call, name: str) -> str:
    return name if "=" in name else call.machine.shown(call.path(name))


async def mount(call: Call) -> Exit:
    """Mount: list, -a, device and directory, directory alone by fstab."""
    given = options(call.args, with_value=("-t", "--types", "-o", "--options"))
    disks = call.machine.disks
    if not call.args:
        return Exit(0, "".join(f"{m.source} on {m.target} type {m.kind} ({m.options})\n" for m in disks.mounts))
    if not call.is_root:
        raise Failed("mount: only root can do that", 1)
    if given.has("-a", "--all"):
        complaints = disks.mount_all()
        return Exit(32 if complaints else 0, stderr="".join(f"{line}\n" for line in complaints))
    kind, how = given.get("-t", "--types") or None, given.get("-o", "--options")
    words = [_plain(call, word) for word in given.words]
    if given.has("--bind", "-B"):
        how = f"{how},bind" if how else "bind"
    try:
        if len(words) == 1:
            entry = next((e for e in fstab_entries(call.machine.root) if words[0] in (e.target, e.source)), None)
            if entry is None:
                raise MountRefused(f"mount: {words[0]}: can't find in /etc/fstab.", 1)
            disks.attach(entry.source, entry.target, kind=entry.kind, options=entry.options)
        elif len(words) == 2:
            source = words[0]
            if kind not in ("tmpfs", "nfs", "nfs4") and "=" not in source and not how.endswith("bind"):
                source = _device(call, given.words[0])[0]
            disks.attach(source, words[1], kind=kind, options=how)
        else:
            raise Failed("mount: bad usage\nTry 'mount --help' for more information.", 1)
    except LookupError:
        raise Failed(f"mount: {words[1]}: special device {given.words[0]} does not exist.", 32) from None
    except MountRefused as refused:
        raise Failed(str(refused), refused.code) from refused
    return Exit()


async def umount(call: Call) -> Exit:
    """Umount: directories or devices."""
    if not call.is_root:
        raise Failed("umount: only root can do that", 32)
    for word in options(call.args).words:
        try:
            call.machine.disks.unmount(_plain(call, word))
        except MountRefused as refused:
            raise Failed(str(refused), refused.code) from refused
    return Exit()


async def findmnt(call: Call) -> Exit:
    """Findmnt: by target or source, with -n -o COLUMNS, -J; exit status 1 if nothing matches."""
    given = options(
        call.args, with_value=("-o", "--output", "-S", "--source", "-T", "--target", "-M", "--mountpoint", "-t")
    )
    wanted = [
        _plain(call, w) for w in [*given.words, *given.all("-S", "--source", "-T", "--target", "-M", "--mountpoint")]
    ]
    mounts = [m for m in call.machine.disks.mounts if all(word in (m.target, m.source) for word in wanted)]
    if not mounts:
        return Exit(1)
    columns = [c.upper() for c in (given.get("-o", "--output") or "TARGET,SOURCE,FSTYPE,OPTIONS").split(",")]
    volumes = dict(call.machine.disks.devices())
    rows = [
        {
            "TARGET": m.target,
            "SOURCE": m.source,
            "FSTYPE": m.kind,
            "OPTIONS": m.options,
            "UUID": volumes[m.source].uuid if m.source in volumes else "",
        }
        for m in mounts
    ]
    if given.has("-J", "--json"):
        return Exit(
            0, json.dumps({"filesystems": [{c.lower(): row.get(c, "") for c in columns} for row in rows]}) + "\n"
        )
    lines = [" ".join(row.get(column, "") for column in columns) for row in rows]
    head = [] if given.has("-n", "--noheadings") else [" ".join(columns)]
    return Exit(0, "".join(f"{line}\n" for line in [*head, *lines]))


async def blkid(call: Call) -> Exit:
    """Blkid: all or some devices, -o value|export, -s TAG; exit status 2 if there is nothing to report."""
    given = options(call.args, with_value=("-o", "--output", "-s", "--match-tag", "-U", "-L"))
    devices = []
    for name in given.words:
        try:
            devices.append(_device(call, name))
        except LookupError:
            continue
    if not given.words:
        devices = list(call.machine.disks.devices())
    for tag, letter in (("UUID", "-U"), ("LABEL", "-L")):
        if given.has(letter):
            found = call.machine.disks.find(f"{tag}={given.get(letter)}")
            return Exit(0, f"{found[0]}\n") if found else Exit(2)
    wanted = [tag.upper() for tag in given.all("-s", "--match-tag")]
    output = ""
    for name, volume in devices:
        # blkid knows only what mkfs has written.
        if volume.filesystem is None:
            continue
        tags = {"LABEL": volume.label, "UUID": volume.uuid, "BLOCK_SIZE": "4096", "TYPE": volume.filesystem}
        if given.has("-p", "--probe"):
            tags["USAGE"] = USAGES.get(volume.filesystem, "filesystem")
        tags = {tag: value for tag, value in tags.items() if value and (not wanted or tag in wanted)}
        match given.get("-o", "--output"):
            case "value":
                output += "".join(f"{value}\n" for value in tags.values())
            case "export":
                output += f"DEVNAME={name}\n" + "".join(f"{tag}={value}\n" for tag, value in tags.items())
            case _:
                output += f"{name}: " + " ".join(f'{tag}="{value}"' for tag, value in tags.items()) + "\n"
    return Exit(0 if output else 2, output)


async def mkfs(call: Call) -> Exit:
    """Mkfs, mkfs.ext4: without a terminal it formats any device, with a file system or not, as the real one does."""
    given = options(call.args, with_value=("-t", "-L", "-m", "-E", "-b", "-i", "-O", "-N", "-U", "--type"))
    # mkfs.ext4 names its type, mkfs takes it with -t.
    kind = call.program.partition(".")[2] or given.get("-t", "--type", default="ext2")
    if not call.is_root:
        raise Failed(f"mkfs.{kind}: Permission denied while trying to determine filesystem size")
    if not given.words:
        raise Failed(f"Usage: mkfs.{kind} [-c|-l filename] [-b block-size] device")
    try:
        name, volume = _device(call, given.words[0])
    except LookupError:
        raise Failed(f"The file {given.words[0]} does not exist and no size was specified.") from None
    mounts = call.machine.disks.mounts_of(name)
    if mounts:
        raise Failed(f"{name} is mounted; will not make a filesystem here!")
    uuid = call.machine.disks.format(volume, kind, label=given.get("-L"))
    return Exit(
        0,
        f"Creating filesystem with 2621440 4k blocks and 655360 inodes\nFilesystem UUID: {uuid}\n",
        "mke2fs 1.46.5 (30-Dec-2021)\n",
    )


async def exportfs(call: Call) -> Exit:
    """Exportfs: -r, -a, -s, -v; reads exports and exports.d again on -r or -a."""
    given = options(call.args)
    if not call.is_root:
        raise Failed("exportfs: could not open /var/lib/nfs/.etab.lock for locking: errno 13 (Permission denied)")
    # The kernel serves what this file says, not what /etc/exports says: changes there need another run.
    etab = call.machine.root / "var/lib/nfs/etab"
    if given.has("-r", "-a"):
        lines, errors = _exports(call)
        etab.parent.mkdir(parents=True, exist_ok=True)
        etab.write_text("".join(f"{line}\n" for line in lines))
        return Exit(1 if errors else 0, stderr="".join(f"{error}\n" for error in errors))
    return Exit(0, etab.read_text() if etab.exists() else "")


def _exports(call: Call) -> tuple[list[str], list[str]]:
    etc = call.machine.root / "etc"
    lines, errors = [], []
    for file in [etc / "exports", *sorted((etc / "exports.d").glob("*.exports"))]:
        if not file.exists():
            continue
        for row in file.read_text().splitlines():
            words = row.split("#")[0].split()
            if not words:
                continue
            place, *clients = words
            if not call.machine.path(place).is_dir():
                errors.append(f"exportfs: Failed to stat {place}: No such file or directory")
                continue
            for client in clients or ["*"]:
                host, _, how = client.partition("(")
                lines.append(f"{place}  {host or '*'}(sync,wdelay,hide,{how.rstrip(')') or 'ro'},sec=sys)")
    return lines, errors


async def showmount(call: Call) -> Exit:
    """Showmount -e: the exports of a server."""
    given = options(call.args)
    host = given.words[0] if given.words else call.machine.addresses[0]
    server = call.machine if host in ("localhost", *call.machine.addresses) else call.world.machine_at(host)
    if server is None or not server.units.is_active("nfs-kernel-server"):
        raise Failed("clnt_create: RPC: Unable to receive")
    etab = server.root / "var/lib/nfs/etab"
    rows = [line.split("(")[0].split() for line in etab.read_text().splitlines()] if etab.exists() else []
    return Exit(0, f"Export list for {host}:\n" + "".join(f"{' '.join(row)}\n" for row in rows))


PROGRAMS: Mapping[str, Program] = {
    "mount": mount,
    "umount": umount,
    "findmnt": findmnt,
    "blkid": blkid,
    "mkfs": mkfs,
    "mkfs.ext4": mkfs,
    "exportfs": exportfs,
    "showmount": showmount,
}
