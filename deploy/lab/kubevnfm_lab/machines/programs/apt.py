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
INTERRUPTED = "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem."
DPKG_FAILED = "E: Sub-process /usr/bin/dpkg returned an error code (1)"
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
    if packages.is_interrupted():
        raise Failed(INTERRUPTED, 100)
    fixing = given.has("-f", "--fix-broken")
    unmet = {name: packages.lacking(name) for name in packages.unfinished if packages.lacking(name)}
    if unmet and not fixing:
        raise Failed(_unmet(unmet), 100, stdout="Reading package lists...\nBuilding dependency tree...\n")
    # apt configures the packages that an earlier run left behind, whatever was asked for.
    chosen, missing = [packages.installed[name] for name in packages.unfinished], []
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
    # The files of a half installed package are incomplete, and apt installs it again only if it is asked to.
    incomplete = [name for name, status in packages.unfinished.items() if status == "half-installed"]
    if incomplete and not given.has("--reinstall"):
        raise Failed(_not_configured(incomplete), 100)
    changing = [p for p in wanted if packages.installed.get(p.name) != p or p.name in packages.unfinished]
    held = [p.name for p in changing if p.name in packages.held and p.name in packages.installed]
    if held and not given.has("--allow-change-held-packages"):
        raise Failed("E: Held packages were changed and -y was used without --allow-change-held-packages.", 100)
    lines = ["Reading package lists...", "Building dependency tree...", "Reading state information..."]
    lines += [f"{p.name} is already the newest version ({p.version})." for p in wanted if p not in changing]
    if given.has("-s", "--simulate", "--dry-run", "--download-only", "-d"):
        return Exit(0, "\n".join(lines) + "\n")
    keeps = keeps_conffiles(given)
    for package in changing:
        old = packages.installed.get(package.name)
        if package.name not in packages.unfinished:
            lines.append(f"Unpacking {package.name} ({package.version}) ...")
        lines.append(f"Setting up {package.name} ({package.version}) ...")
        question = conffile_question(call, package, keeps=keeps)
        if question:
            raise Failed(f"{question}\n{DPKG_FAILED}", 100, stdout="\n".join(lines) + "\n")
        install(call, package, old)
    # An installation takes no time here; yielding lets the end of the script cancel it.
    await asyncio.sleep(0)
    return Exit(0, "\n".join(lines) + "\n")


def _unmet(unmet: Mapping[str, list[str]]) -> str:
    lines = "".join(
        f" {name} : Depends: {other} but it is not going to be installed\n"
        for name, others in unmet.items()
        for other in others
    )
    return (
        "You might want to run 'apt --fix-broken install' to correct these.\n"
        f"The following packages have unmet dependencies:\n{lines}"
        "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution)."
    )


def _not_configured(names: list[str]) -> str:
    return (
        "".join(f"dpkg: error processing package {name} (--configure):\n package is half installed\n" for name in names)
        + f"Errors were encountered while processing:\n {' '.join(names)}\n{DPKG_FAILED}"
    )


def keeps_conffiles(given: Options) -> bool:
    """Return whether dpkg was asked to keep changed configuration files; ``given``: the options of apt-get."""
    return any(value == "Dpkg::Options::=--force-confold" for value in given.all("-o", "--option"))


def conffile_question(call: Call, package: Package, *, keeps: bool) -> str:
    """Write a package's configuration files; return dpkg's last words where it would ask about a changed one."""
    packages = call.machine.packages
    for path, content in package.conffiles.items():
        file = call.machine.root / path
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        elif file.read_text() != content and not keeps:
            # Its input is empty, so dpkg gets no answer, and leaves the package behind.
            packages.installed[package.name] = package
            packages.unfinished[package.name] = "unpacked"
            return (
                f"\nConfiguration file '/{path}'\n ==> File on system created by you or by a script.\n"
                " ==> File also in package provided by package maintainer.\n   What would you like to do about it ?\n"
                f"*** {file.name} (Y/I/N/O/D/Z) [default=N] ? dpkg: error processing package {package.name} (--configure):\n"
                " end of file on stdin at conffile prompt\n"
                f"Errors were encountered while processing:\n {package.name}"
            )
    return ""


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
    machine.packages.unfinished.pop(package.name, None)
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
    machine.packages.unfinished.pop(package.name, None)
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
