"""dpkg and dpkg-query."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from kubevnfm_lab.machines.packages import Package, PackageDatabase
from kubevnfm_lab.machines.programs.apt import conffile_question, install
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options

WITH_VALUE = ("-f", "--showformat")


async def dpkg(call: Call) -> Exit:
    """Dpkg: --print-architecture, -l, -s, -L, -S, --get-selections, --compare-versions, --configure -a."""
    given = options(call.args, with_value=WITH_VALUE)
    if given.has("--print-architecture"):
        return Exit(0, "amd64\n")
    if given.has("--compare-versions"):
        return _compare(given.words)
    if given.has("--configure"):
        return _configure(call, keeps=given.has("--force-confold"))
    if given.has("-i", "--install", "--unpack"):
        missing = [name for name in given.words if not call.path(name).exists()]
        if missing:
            raise Failed(f"dpkg: error: cannot access archive '{missing[0]}': No such file or directory", 2)
        return Exit()
    if given.has("--get-selections", "--set-selections"):
        held = call.machine.packages.held
        rows = [f"{n}\t\t{'hold' if n in held else 'install'}\n" for n in sorted(call.machine.packages.installed)]
        return Exit(0, "".join(rows))
    return _query(call, given)


async def dpkg_query(call: Call) -> Exit:
    """Dpkg-query: -W with a format, -l, -s, -L."""
    return _query(call, options(call.args, with_value=WITH_VALUE, glued="f"))


def _configure(call: Call, *, keeps: bool) -> Exit:
    """Configure what is unpacked only; an interruption is over then."""
    if not call.is_root:
        raise Failed("dpkg: error: requested operation requires superuser privilege", 2)
    packages = call.machine.packages
    if packages.is_interrupted():
        for file in (call.machine.root / "var/lib/dpkg/updates").iterdir():
            file.unlink()
    output, errors = "", ""
    for name, status in list(packages.unfinished.items()):
        if status == "half-installed":
            continue  # there is nothing to configure, and this is no error
        lacking = packages.lacking(name)
        if lacking:
            errors += (
                f"dpkg: dependency problems prevent configuration of {name}:\n"
                + "".join(
                    f" {name} depends on {other}; however:\n  Package {other} is not installed.\n" for other in lacking
                )
                + f"\ndpkg: error processing package {name} (--configure):\n dependency problems - leaving unconfigured\n"
            )
            continue
        question = conffile_question(call, packages.installed[name], keeps=keeps)
        if question:
            errors += f"{question}\n"
            continue
        output += f"Setting up {name} ({packages.installed[name].version}) ...\n"
        install(call, packages.installed[name])
    return Exit(1 if errors else 0, output, errors)


def _query(call: Call, given: Options) -> Exit:
    packages = call.machine.packages
    installed = packages.installed
    if given.has("-W", "--show"):
        form = given.get("-f", "--showformat", default="${Package}\\t${Version}\\n")
        found, missing = _matching(installed, given.words)
        output = "".join(_format(form, package, packages) for _, package in found)
        errors = "".join(f"dpkg-query: no packages found matching {name}\n" for name in missing)
        return Exit(1 if missing else 0, output, errors)
    if given.has("-l", "--list"):
        found, missing = _matching(installed, given.words)
        mark = {name: "hi" if name in call.machine.packages.held else "ii" for name, _ in found}
        rows = [f"{mark[name]}  {name:<30} {package.version:<30} amd64 -\n" for name, package in found]
        errors = "".join(f"dpkg-query: no packages found matching {name}\n" for name in missing)
        return Exit(1 if missing else 0, "".join(rows), errors)
    if given.has("-s", "--status"):
        return _status(packages, given.words)
    if given.has("-L", "--listfiles", "-S", "--search"):
        lines = [f"/usr/{path}\n" for name in given.words if name in installed for path in installed[name].programs]
        return Exit(0, "".join(lines))
    raise Failed("dpkg: error: need an action option", 2)


def _status(packages: PackageDatabase, names: list[str]) -> Exit:
    output, errors = "", ""
    for name in names:
        if name in packages.installed:
            status, version = packages.status(name), packages.installed[name].version
            output += f"Package: {name}\nStatus: install ok {status}\nArchitecture: amd64\nVersion: {version}\n\n"
        else:
            errors += f"dpkg-query: package '{name}' is not installed and no information is available\n"
    return Exit(1 if errors else 0, output, errors)


def _matching(installed: Mapping[str, Package], patterns: list[str]) -> tuple[list[tuple[str, Package]], list[str]]:
    if not patterns:
        return sorted(installed.items()), []
    found, missing = [], []
    for pattern in patterns:
        hits = [(name, package) for name, package in sorted(installed.items()) if fnmatchcase(name, pattern)]
        found += hits
        if not hits:
            missing.append(pattern)
    return found, missing


ABBREVIATED = {"installed": "i", "unpacked": "U", "half-configured": "F", "half-installed": "H"}


def _format(form: str, package: Package, packages: PackageDatabase) -> str:
    held, status = package.name in packages.held, packages.status(package.name)
    values = {
        "Package": package.name,
        "binary:Package": package.name,
        "Version": package.version,
        "Architecture": "amd64",
        "Status": f"{'hold' if held else 'install'} ok {status}",
        "db:Status-Status": status,
        "db:Status-Abbrev": f"{'h' if held else 'i'}{ABBREVIATED[status]} ",
        "db:Status-Want": "hold" if held else "install",
    }
    for name, value in values.items():
        form = form.replace(f"${{{name}}}", value)
    # The shell passes these escapes on unchanged; dpkg-query itself interprets them.
    return form.replace("\\n", "\n").replace("\\t", "\t")


def _compare(words: list[str]) -> Exit:
    if len(words) != 3:
        raise Failed("dpkg: error: --compare-versions takes three arguments: <version> <relation> <version>", 2)
    left, relation, right = words
    order = (_key(left) > _key(right)) - (_key(left) < _key(right))
    outcome = {
        "lt": order < 0, "<": order < 0, "<<": order < 0, "le": order <= 0, "<=": order <= 0, "eq": order == 0,
        "=": order == 0, "ne": order != 0, "ge": order >= 0, ">=": order >= 0, "gt": order > 0, ">": order > 0, ">>": order > 0,
    }  # fmt: skip
    return Exit(0 if outcome.get(relation) else 1)


def _key(version: str) -> list[tuple[int, int, str]]:
    """Order digits as numbers and the rest as text, which suffices for the versions offered here."""
    parts, current = [], ""
    for character in f"{version} ":
        if current and (character.isdigit() != current[-1].isdigit()):
            parts.append((1, int(current), "") if current.isdigit() else (0, 0, current))
            current = ""
        current += character
    return parts


PROGRAMS: Mapping[str, Program] = {"dpkg": dpkg, "dpkg-query": dpkg_query}
