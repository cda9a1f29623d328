"""Small programs about the machine itself: host name, cloud-init, ip, iptables, sudo's password check."""

from __future__ import annotations

import hmac
import ipaddress
import json
from collections.abc import Mapping

from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Program, options
from kubevnfm_lab.machines.programs.systemd import set_hostname


async def hostname(call: Call) -> Exit:
    """Hostname: show, -s, -f, -I, -i, set."""
    given = options(call.args)
    machine = call.machine
    if given.has("-I", "--all-ip-addresses"):
        return Exit(0, " ".join(machine.addresses) + " \n")
    if given.has("-i", "--ip-address"):
        return Exit(0, f"{machine.addresses[0] if machine.addresses else '127.0.1.1'}\n")
    if given.words:
        if not call.is_root:
            raise Failed("hostname: you must be root to change the host name")
        set_hostname(call, given.words[0])
        return Exit()
    return Exit(0, f"{machine.hostname}\n")


async def cloud_init(call: Call) -> Exit:
    """Cloud-init: status (with --wait, --long, --format json), query."""
    given = options(call.args, with_value=("--format",))
    errors = call.machine.config.errors
    state = "error" if errors else "done"
    if given.words[:1] != ["status"]:
        return Exit()
    code = 1 if errors else 0
    if given.get("--format") in ("json", "yaml"):
        report = {
            "boot_status_code": "enabled-by-generator",
            "datasource": "openstack",
            "detail": "DataSourceOpenStackLocal [net,ver=2]",
            "errors": errors,
            "extended_status": state,
            "recoverable_errors": {},
            "schemas": {},
            "status": state,
        }
        return Exit(code, json.dumps(report, indent=1) + "\n")
    return Exit(code, f"status: {state}\n" + ("".join(f"{error}\n" for error in errors) if given.has("--long") else ""))


async def ip(call: Call) -> Exit:
    """Ip: addr and route, plain or as JSON; other objects are accepted without effect."""
    given = options(call.args)
    words = [*given.words, "address"]
    nics = [(f"ens{3 + index}", nic) for index, nic in enumerate(call.machine.spec.nics)]
    first = nics[0][1].address if nics else ipaddress.IPv4Address("127.0.0.1")
    gateway = ipaddress.ip_network(f"{first}/24", strict=False)[1]
    as_json = given.has("-j", "-json")
    if "address".startswith(words[0]) and "add" not in words[1:] and "del" not in words[1:]:
        if as_json:
            links = [
                {"ifname": name, "operstate": "UP", "address": nic.mac,
                 "addr_info": [{"family": "inet", "local": str(nic.address), "prefixlen": 24, "scope": "global"}]}
                for name, nic in nics
            ]  # fmt: skip
            return Exit(0, json.dumps(links) + "\n")
        if given.has("-o", "-oneline"):
            lines = [
                f"{index}: {name}    inet {nic.address}/24 scope global {name}\\       valid_lft forever preferred_lft forever\n"
                for index, (name, nic) in enumerate(nics, 2)
            ]
            return Exit(0, "".join(lines))
        rows = [
            f"{index}: {name}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 state UP\n    link/ether {nic.mac}\n"
            f"    inet {nic.address}/24 scope global {name}\n"
            for index, (name, nic) in enumerate(nics, 2)
        ]
        return Exit(0, "".join(rows))
    if "route".startswith(words[0]) and words[1:2] != ["add"]:
        if as_json:
            route = {"dst": "default", "gateway": str(gateway), "dev": "ens3", "prefsrc": str(first)}
            return Exit(0, json.dumps([route]) + "\n")
        return Exit(0, f"default via {gateway} dev ens3 proto dhcp src {first}\n")
    return Exit()


async def accepted(_call: Call) -> Exit:
    """Succeed without any effect."""
    return Exit()


async def sudo_password(call: Call) -> Exit:
    """Check a user's password for the sudo script."""
    name, password = call.args
    account = call.machine.config.accounts.get(name)
    known = account.password if account else None
    return Exit(0 if known is not None and hmac.compare_digest(known.encode(), password.encode()) else 1)


PROGRAMS: Mapping[str, Program] = {
    "hostname": hostname,
    "cloud-init": cloud_init,
    "ip": ip,
    "iptables": accepted,
    "sudo-password": sudo_password,
}
