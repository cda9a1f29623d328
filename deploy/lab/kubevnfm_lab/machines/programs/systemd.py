"""systemctl, journalctl and hostnamectl."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options
from kubevnfm_lab.machines.units import Unit
from kubevnfm_lab.machines.wordlist import words

CHANGING = frozenset(
    words("start stop restart reload try-restart reload-or-restart enable disable mask unmask daemon-reload")
)
WITH_VALUE = (
    "-p",
    "--property",
    "-u",
    "--unit",
    "-n",
    "--lines",
    "--type",
    "-t",
    "-o",
    "--output",
    "--since",
    "--state",
)


async def systemctl(call: Call) -> Exit:
    """Systemctl: the verbs of units, daemon-reload, is-system-running, list-units."""
    given = options(call.args, with_value=WITH_VALUE)
    verb, names = (given.words[0], given.words[1:]) if given.words else ("list-units", [])
    if verb in CHANGING and not call.is_root:
        raise Failed(
            f"Failed to {verb} {names[0] if names else 'daemon'}: Interactive authentication required.\n"
            "See system logs and 'systemctl status' for details.",
            1 if verb in ("enable", "disable", "daemon-reload") else 4,
        )
    match verb:
        case "daemon-reload" | "daemon-reexec" | "reset-failed" | "set-default" | "mask" | "unmask":
            return Exit()
        case "is-system-running":
            return Exit(0, "running\n")
        case "list-units" | "list-unit-files":
            rows = [f"  {u.name}.service loaded {u.state} {u.name}\n" for u in call.machine.units.by_name.values()]
            return Exit(0, "".join(rows))
        case "is-active" | "is-enabled" | "is-failed":
            return _asked(call, verb, names)
        case "status" | "show" | "cat":
            return _shown(call, verb, given, names)
    code, errors = 0, ""
    for name in names:
        one = _change(call, verb, name, now=given.has("--now"))
        code, errors = one.code or code, errors + one.stderr
    return Exit(code, stderr=errors)


def _asked(call: Call, verb: str, names: list[str]) -> Exit:
    lines, code = [], 0
    for name in names:
        unit = call.machine.units.find(name)
        if verb == "is-enabled":
            if unit is None:
                raise Failed(f"Failed to get unit file state for {name}: No such file or directory")
            lines.append("enabled" if unit.enabled else "disabled")
            code = code or (0 if unit.enabled else 1)
        else:
            state = unit.state if unit else "inactive"
            lines.append(state)
            wanted = "active" if verb == "is-active" else "failed"
            code = code or (0 if state == wanted else 3 if verb == "is-active" else 1)
    return Exit(code, "" if "--quiet" in call.args or "-q" in call.args else "".join(f"{line}\n" for line in lines))


def _shown(call: Call, verb: str, given: Options, names: list[str]) -> Exit:
    output, code = "", 0
    for name in names:
        unit = call.machine.units.find(name)
        short = name.removesuffix(".service")
        if verb == "show":
            output += _properties(unit, short, given)
        elif unit is None:
            raise Failed(f"Unit {short}.service could not be found.", 4)
        elif verb == "cat":
            file = call.machine.units.file_of(short)
            output += file.read_text() if file else ""
        else:
            output += f"* {short}.service\n     Loaded: loaded ({'enabled' if unit.enabled else 'disabled'})\n     Active: {unit.state}\n"
            code = 0 if unit.state == "active" else 3
    return Exit(code, output)


def _properties(unit: Unit | None, short: str, given: Options) -> str:
    values = {
        "Id": f"{short}.service",
        "LoadState": "loaded" if unit else "not-found",
        "ActiveState": unit.state if unit else "inactive",
        "SubState": {"active": "running", "activating": "auto-restart", "failed": "failed"}.get(
            unit.state if unit else "", "dead"
        ),
        "UnitFileState": ("enabled" if unit.enabled else "disabled") if unit else "",
        "NRestarts": "0",
    }
    asked = [name for group in given.all("-p", "--property") for name in group.split(",")] or list(values)
    if given.has("--value"):
        return "".join(f"{values.get(name, '')}\n" for name in asked)
    return "".join(f"{name}={values[name]}\n" for name in asked if name in values)


def _change(call: Call, verb: str, name: str, *, now: bool) -> Exit:
    units = call.machine.units
    unit = units.find(name)
    full = name if "." in name.rsplit("/", 1)[-1] else f"{name}.service"
    if unit is None:
        # Only services are modelled; scripts also enable timers and targets, which a stock image has.
        if full.endswith((".timer", ".target", ".socket", ".mount", ".slice")):
            return Exit()
        text = {
            "enable": f"Failed to enable unit: Unit file {full} does not exist.\n",
            "disable": f"Failed to disable unit: Unit file {full} does not exist.\n",
            "stop": f"Failed to stop {full}: Unit {full} not loaded.\n",
        }.get(verb, f"Failed to {verb} {full}: Unit {full} not found.\n")
        return Exit(1 if verb in ("enable", "disable") else 5, stderr=text)
    if verb in ("enable", "disable"):
        errors = ""
        if verb == "enable" and not unit.enabled:
            place = f"/etc/systemd/system/multi-user.target.wants/{unit.name}.service"
            # systemctl reports the link on stderr, so that scripts that read stdout see nothing of it.
            errors = f"Created symlink {place} -> /lib/systemd/system/{unit.name}.service.\n"
        unit.enabled = verb == "enable"
        if now:
            ended = _change(call, "start" if unit.enabled else "stop", name, now=False)
            return Exit(ended.code, stderr=errors + ended.stderr)
        return Exit(0, stderr=errors)
    if verb == "stop":
        units.stop(unit)
        return Exit()
    if verb == "reload" and unit.state != "active":
        return Exit(1, stderr=f"{full} is not active, cannot reload.\n")
    if verb == "try-restart" and unit.state != "active":
        return Exit()
    # Starting a running service changes nothing; in particular it does not read its configuration again.
    if verb == "start" and unit.state == "active":
        return Exit()
    refusal = units.reload(unit) if verb == "reload" else units.start(unit)
    if refusal and refusal.state == "failed":
        return Exit(
            1,
            stderr=f"Job for {full} failed because the control process exited with error code.\n"
            f'See "systemctl status {full}" and "journalctl -xeu {full}" for details.\n',
        )
    return Exit()


async def journalctl(call: Call) -> Exit:
    """Journalctl: the reason why a unit does not run."""
    given = options(call.args, with_value=WITH_VALUE)
    lines = []
    for name in given.all("-u", "--unit"):
        unit = call.machine.units.find(name)
        if unit:
            refusal = call.machine.units.refusal(unit)
            lines.append(f"{call.machine.hostname} {unit.name}[1000]: {refusal.reason if refusal else 'Started.'}")
    return Exit(0, "".join(f"{line}\n" for line in lines) or "-- No entries --\n")


async def hostnamectl(call: Call) -> Exit:
    """Hostnamectl: status, hostname, set-hostname."""
    words = options(call.args).words
    verb = words[0] if words else "status"
    if verb in ("set-hostname", "hostname") and len(words) > 1:
        if not call.is_root:
            raise Failed("Could not set pretty hostname: Interactive authentication required.")
        set_hostname(call, words[1])
        return Exit()
    if verb == "hostname":
        return Exit(0, f"{call.machine.hostname}\n")
    return Exit(
        0,
        f"   Static hostname: {call.machine.hostname}\n  Operating System: {call.machine.rootfs.system.pretty_name}\n",
    )


def set_hostname(call: Call, name: str) -> None:
    """Set the machine's static host name; stored in ``/etc/hostname``."""
    if not name or len(name) > 64 or not all(c.isalnum() or c in "-." for c in name):
        raise Failed(f"Failed to set hostname: Invalid hostname '{name}'")
    call.machine.hostname = name
    (call.machine.root / "etc/hostname").write_text(f"{name}\n")


PROGRAMS: Mapping[str, Program] = {
    "systemctl": systemctl,
    "journalctl": journalctl,
    "hostnamectl": hostnamectl,
}
