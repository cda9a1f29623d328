"""swapoff, swapon, modprobe, lsmod and sysctl."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.machines.kernel import sysctl_assignments, sysctl_files
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options
from kubevnfm_lab.machines.storage import fstab_entries


async def swapoff(call: Call) -> Exit:
    """Swapoff: -a or devices."""
    given = options(call.args)
    kernel = call.machine.kernel
    if not call.is_root:
        raise Failed("swapoff: Not superuser.")
    if given.has("-a", "--all"):
        kernel.swap_devices.clear()
    for device in given.words:
        if device not in kernel.swap_devices:
            raise Failed(f"swapoff: {device}: swapoff failed: Invalid argument", 4)
        kernel.swap_devices.remove(device)
    kernel.publish()
    return Exit()


async def swapon(call: Call) -> Exit:
    """Swapon: --show, -a, devices."""
    given = options(call.args)
    kernel = call.machine.kernel
    if given.has("--show", "-s", "--summary") or not call.args:
        heads = [] if given.has("--noheadings") or not kernel.swap_devices else ["NAME      TYPE SIZE USED PRIO"]
        return Exit(
            0, "".join(f"{line}\n" for line in [*heads, *(f"{d} file   2G   0B   -2" for d in kernel.swap_devices)])
        )
    if not call.is_root:
        raise Failed("swapon: cannot open: Permission denied", 255)
    wanted = (
        [e.source for e in fstab_entries(call.machine.root) if e.kind == "swap"] if given.has("-a") else given.words
    )
    kernel.swap_devices += [device for device in wanted if device not in kernel.swap_devices]
    kernel.publish()
    return Exit()


async def modprobe(call: Call) -> Exit:
    """Modprobe: load, -a, -r, -n."""
    given = options(call.args)
    if not call.is_root:
        raise Failed(
            f"modprobe: ERROR: could not insert '{given.words[0] if given.words else ''}': Operation not permitted"
        )
    modules = given.words if given.has("-a", "--all", "-r") else given.words[:1]
    for module in modules:
        if given.has("-r"):
            call.machine.kernel.modules.discard(module.replace("-", "_"))
        elif not call.machine.kernel.load(module):
            raise Failed(f"modprobe: FATAL: Module {module} not found in directory /lib/modules/5.15.0-119-generic")
    call.machine.kernel.publish()
    return Exit()


async def lsmod(call: Call) -> Exit:
    """Lsmod."""
    rows = [f"{name:<23} 16384  0\n" for name in sorted(call.machine.kernel.modules)]
    return Exit(0, "Module                  Size  Used by\n" + "".join(rows))


async def sysctl(call: Call) -> Exit:
    """Sysctl: read, -w, -p file, --system, -a, -n, -q."""
    given = options(call.args)
    kernel = call.machine.kernel
    files = []
    if given.has("--system"):
        files = sysctl_files(call.machine.root)
    elif given.has("-p", "--load"):
        names = given.words or [name for name in given.all("-p", "--load") if name] or ["/etc/sysctl.conf"]
        files = [call.path(name) for name in names]
        given.words.clear()
    output, errors = "", ""
    for file in files:
        if not file.exists():
            raise Failed(f'sysctl: cannot open "{call.machine.shown(file)}": No such file or directory', 255)
        output += f"* Applying {call.machine.shown(file)} ...\n" if given.has("--system") else ""
        given.words += [f"{key}={value}" for key, value in sysctl_assignments(file.read_text())]
    if given.has("-a", "--all"):
        given.words = sorted(kernel.sysctl)
    for word in given.words:
        key, assigned, value = word.partition("=")
        key = key.strip().replace("/", ".")
        # One unknown key does not prevent the others from being set, but the exit status reports it.
        if key not in kernel.sysctl:
            errors += f"sysctl: cannot stat /proc/sys/{key.replace('.', '/')}: No such file or directory\n"
            continue
        if assigned:
            if not call.is_root:
                raise Failed(f'sysctl: permission denied on key "{key}"', 255)
            kernel.set_value(key, value.strip())
        if not given.has("-q", "--quiet") or not assigned:
            output += f"{kernel.sysctl[key]}\n" if given.has("-n", "--values") else f"{key} = {kernel.sysctl[key]}\n"
    kernel.publish()
    return Exit(255 if errors else 0, output, errors)


PROGRAMS: Mapping[str, Program] = {
    "swapoff": swapoff,
    "swapon": swapon,
    "modprobe": modprobe,
    "lsmod": lsmod,
    "sysctl": sysctl,
}
