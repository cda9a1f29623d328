"""apt-get, apt and apt-mark."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kubevnfm_lab.machines.packages import Package
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options

NOT_ROOT = (
    "E: Could not open lock file /var/lib/dpkg/lock-frontend - open (13: Permission denied)\n"
    "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?"
)
UPDATE_NOT_ROOT = (
    "E: Could not open lock file /var/lib/apt/lists/lock - open (13: Permission denied)\n"
    "E: Unable to lock directory /var/lib/apt/lists/"
)
WITH_VALUE = ("-o", "--option", "-c", "--config-file", "-t", "--target-release", "-a")


async def apt_get(call: Call) -> Exit:
    """Apt-get and apt: update, install, remove, purge, upgrade, clean, list."""
    given = options(call.args, with_value=WITH_VALUE)
    if not given.words:
        return Exit(0 if given.has("--help", "--version") else 1, "apt 2.4.13 (amd64)\n")
    verb, *names = given.words
    match verb:
        case "update":
            return _update(call)
        case "install" | "reinstall":
            return await _install(call, given, names)
        case "remove" | "purge" | "autoremove" | "autopurge":
            return _remove(call, names)
        case "upgrade" | "dist-upgrade" | "full-upgrade" | "clean" | "autoclean" | "check" | "download":
            return Exit(0, "Reading package lists... Done\n")
        case "list":
            return _list(call, given, names)
    raise Failed(f"E: Invalid operation {verb}", 100)


def _update(call: Call) -> Exit:
    if not call.is_root:
        raise Failed(UPDATE_NOT_ROOT, 100, stdout="Reading package lists... Done\n")
    packages = call.machine.packages
    packages.update()
    lines = ["Hit:1 http://archive.example/ubuntu jammy InRelease"]
    lines += [f"Get:{number} {_uri(source)} InRelease" for number, source in enumerate(packages.sources(), 2)]
    return Exit(0, "\n".join([*lines, "Reading package lists... Done\n"]))


def _uri(source: str) -> str:
    return next((word for word in source.split() if "://" in word), source)


async def _install(call: Call, given: Options, names: list[str]) -> Exit:
    if not call.is_root:
        raise Failed(NOT_ROOT, 100)
    packages = call.machine.packages
    chosen, missing = [], []
    for name in names:
        # A path names a package file, which is only required to exist: the lab cannot unpack it.
        if "/" in name:
            if not call.path(name).exists():
                missing.append(f"E: Unsupported file {name} given on commandline")
            continue
        short, _, version = name.partition("=")
        package = packages.candidate(short, version or None)
        if package is None and version and packages.candidate(short):
            missing.append(f"E: Version '{version}' for '{short}' was not found")
        elif package is None:
            missing.append(f"E: Unable to locate package {short}")
        else:
            chosen.append(package)
    if missing:
        raise Failed("\n".join(missing), 100, stdout="Reading package lists...\nBuilding dependency tree...\n")
    wanted = _with_dependencies(call, chosen)
    changing = [p for p in wanted if packages.installed.get(p.name) != p]
    held = [p.name for p in changing if p.name in packages.held and p.name in packages.installed]
    if held and not given.has("--allow-change-held-packages"):
        raise Failed("E: Held packages were changed and -y was used without --allow-change-held-packages.", 100)
    lines = ["Reading package lists...", "Building dependency tree...", "Reading state information..."]
    lines += [f"{p.name} is already the newest version ({p.version})." for p in wanted if p not in changing]
    if given.has("-s", "--simulate", "--dry-run", "--download-only", "-d"):
        return Exit(0, "\n".join(lines) + "\n")
    for package in changing:
        old = packages.installed.get(package.name)
        lines += [
            f"Unpacking {package.name} ({package.version}) ...",
            f"Setting up {package.name} ({package.version}) ...",
        ]
        install(call, package, old)
    # An installation takes no time here; yielding lets the end of the script cancel it.
    await asyncio.sleep(0)
    return Exit(0, "\n".join(lines) + "\n")


def _with_dependencies(call: Call, chosen: list[Package]) -> list[Package]:
    packages, ordered = call.machine.packages, dict[str, Package]()

    def add(package: Package) -> None:
        for name in package.depends:
            found = None if name in packages.installed or name in ordered else packages.candidate(name)
            if found and found not in chosen:
                add(found)
        ordered.setdefault(package.name, package)

    for package in chosen:
        add(package)
    return list(ordered.values())


def install(call: Call, package: Package, old: Package | None = None) -> None:
    """Unpack and configure one package: its programs exist, its services are enabled and started."""
    machine = call.machine
    if old:
        machine.rootfs.remove_programs(old.programs)
    machine.packages.installed[package.name] = package
    machine.rootfs.add_programs(package.programs)
    for name in package.units:
        unit = machine.units.add(name, enabled=True)
        machine.units.start(unit)


def _remove(call: Call, names: list[str]) -> Exit:
    if not call.is_root:
        raise Failed(NOT_ROOT, 100)
    machine = call.machine
    lines = ["Reading package lists...", "Building dependency tree...", "Reading state information..."]
    unknown = [
        name for name in names if name not in machine.packages.installed and not machine.packages.candidate(name)
    ]
    if unknown:
        raise Failed("\n".join(f"E: Unable to locate package {name}" for name in unknown), 100)
    for name in names:
        package = machine.packages.installed.get(name)
        if package is None:
            lines.append(f"Package '{name}' is not installed, so not removed")
            continue
        remove(call, package)
        lines.append(f"Removing {name} ({package.version}) ...")
    return Exit(0, "\n".join(lines) + "\n")


def remove(call: Call, package: Package) -> None:
    """Remove one package with its programs and services."""
    machine = call.machine
    for name in package.units:
        unit = machine.units.find(name)
        if unit:
            machine.units.stop(unit)
        machine.units.discard(name)
    machine.rootfs.remove_programs(package.programs)
    machine.packages.held.discard(package.name)
    del machine.packages.installed[package.name]


def _list(call: Call, given: Options, names: list[str]) -> Exit:
    packages = call.machine.packages
    lines = ["Listing..."]
    for name in names or sorted(packages.installed):
        installed = packages.installed.get(name)
        offered = packages.candidate(name)
        if installed:
            lines.append(f"{name}/jammy,now {installed.version} amd64 [installed]")
        elif offered and not given.has("--installed"):
            lines.append(f"{name}/jammy {offered.version} amd64")
    return Exit(0, "\n".join(lines) + "\n")


async def apt_mark(call: Call) -> Exit:
    """Apt-mark: hold, unhold, showhold, auto, manual."""
    packages = call.machine.packages
    words = options(call.args).words
    verb, names = (words[0], words[1:]) if words else ("", [])
    if verb == "showhold":
        return Exit(0, "".join(f"{name}\n" for name in sorted(packages.held)))
    if not call.is_root:
        raise Failed(NOT_ROOT, 100)
    unknown = [name for name in names if name not in packages.installed and not packages.candidate(name)]
    if unknown:
        raise Failed("\n".join(f"E: Unable to locate package {name}" for name in unknown), 100)
    lines = []
    for name in names:
        if verb == "hold":
            lines.append(
                f"{name} {'was already' if name in packages.held else 'set'} {'set ' * (name in packages.held)}on hold."
            )
            packages.held.add(name)
        elif verb == "unhold":
            lines.append(f"Canceled hold on {name}." if name in packages.held else f"{name} was already not on hold.")
            packages.held.discard(name)
    return Exit(0, "".join(f"{line}\n" for line in lines))


PROGRAMS: Mapping[str, Program] = {
    "apt-get": apt_get,
    "apt": apt_get,
    "apt-mark": apt_mark,
}
