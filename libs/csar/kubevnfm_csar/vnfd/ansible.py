"""The Ansible driver of Tacker's samples: the playbooks of a package, as ``ScriptANSIBLE/config.yaml`` lists them (sequences.md 6.8)."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from kubevnfm_kit.foreign_yaml.kubernetes import read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import YamlRefused
from kubevnfm_kit.nearest import nearest
from kubevnfm_kit.printable import printable

from kubevnfm_csar.files import PackageFiles

DRIVERS: Final = frozenset({"ansible_driver", "mgmt-drivers-ansible"})
"""Implementation names of the driver. A package that has the file which its VNFD names has a driver of its own."""
CONFIG: Final = "ScriptANSIBLE/config.yaml"
_LARGEST: Final = 1024 * 1024
_PACKAGE: Final = "_VAR_vnf_package_path"
_ACTIONS: Final = ("instantiation", "termination", "healing", "scale-in", "scale-out")
_WAIT: Final = "connection_wait_timeout"
_WAITS: Final = ("retry_count", "retry_interval", _WAIT, "command_execution_wait_timeout")
_WITHHELD: Final = "Files/"
"""The folder of a package that its code does not get."""
_APP: Final = ("type", "node_pair", "username", "password", "priv_key_file", *_WAITS, *_ACTIONS)
_ENTRY: Final = ("path", "params", "order", "target_hosts", "ansible_version")
_ON_OUR_HOST: Final = "is for commands on the host of the VNFM or on others, which are not run: playbooks reach the machines of the VNF alone"


def ansible_config(files: PackageFiles, vdus: Collection[str]) -> tuple[bytes, str]:
    """Return the content of the file that lists the playbooks, and why they cannot be run; "" if nothing is known.

    ``vdus``: those of all flavours.
    """
    if CONFIG not in files.names():
        return b"", f"the package has no file {CONFIG}"
    with files.open(CONFIG) as stream:
        raw = stream.read(_LARGEST + 1)
    if len(raw) > _LARGEST:
        return b"", f"{CONFIG}: at most {_LARGEST} bytes expected"
    try:
        body = read_one_kubernetes_yaml(raw.decode())
    except UnicodeDecodeError:
        return raw, f"{CONFIG}: UTF-8 text expected"
    except YamlRefused as error:
        return raw, f"{CONFIG}: invalid YAML: {printable(str(error))}"
    fault = next(_faults(body, files.names(), vdus), None)
    return raw, f"{CONFIG}: {printable(fault)[:500]}" if fault is not None else ""


def _faults(body: Any, files: Collection[str], vdus: Collection[str]) -> Iterator[str]:
    if not isinstance(body, Mapping) or not isinstance(body.get("vdus"), Mapping):
        yield "vdus: an object with one entry for each VDU expected"
        return
    yield from _unknown(body, ("configurable_properties", "vdus"), "")
    properties = body.get("configurable_properties") or {}
    if not isinstance(properties, Mapping) or any(not str(name).startswith("_VAR_") for name in properties):
        yield "configurable_properties: an object whose names begin with _VAR_ expected"
    for vdu, entry in body["vdus"].items():
        config = entry.get("config") if isinstance(entry, Mapping) else None
        app = config.get("vm_app_config") if isinstance(config, Mapping) else None
        place = f"vdus/{vdu}/config"
        if vdu not in vdus:
            yield f"vdus/{vdu}: {_no_vdu(vdu, vdus)}"
        if not isinstance(config, Mapping) or not isinstance(app, Mapping):
            yield f"{place}: order and vm_app_config expected"
            continue
        yield from _unknown(config, ("order", "vm_app_config"), f"{place}/")
        if not _is_whole(config.get("order")):
            yield f"{place}/order: a whole number expected"
        yield from _of_app(app, f"{place}/vm_app_config", files)
        pair = app.get("node_pair")
        if pair and (not isinstance(pair, str) or pair not in vdus):
            yield f"{place}/vm_app_config/node_pair: {_no_vdu(pair, vdus)}"


def _no_vdu(name: Any, vdus: Collection[str]) -> str:
    meant = nearest(str(name), vdus)
    return f"did you mean {meant}?" if meant else f"a VDU of the VNFD expected: {', '.join(sorted(vdus)) or 'none'}"


def _of_app(app: Mapping[str, Any], place: str, files: Collection[str]) -> Iterator[str]:
    if app.get("type", "ansible") != "ansible" or "execute-host" in app:
        yield f"{place}/{'execute-host' if 'execute-host' in app else 'type'}: {_ON_OUR_HOST}"
    yield from _unknown(app, _APP, f"{place}/")
    wait = app.get(_WAIT) or 0
    if not isinstance(wait, int | float) or isinstance(wait, bool) or wait < 0:
        yield f"{place}/{_WAIT}: seconds expected"
    key = app.get("priv_key_file") or f"{_PACKAGE}/"
    if not isinstance(key, str) or not key.startswith("_VAR_"):
        yield f"{place}/priv_key_file: a file of the package expected, as {_PACKAGE}/Scripts/key"
    elif key.startswith(f"{_PACKAGE}/") and key != f"{_PACKAGE}/":
        yield from _of_path(key, f"{place}/priv_key_file", files)
    for action in _ACTIONS:
        listed = app.get(action) or []
        if not isinstance(listed, list):
            yield f"{place}/{action}: a list of playbooks expected"
            continue
        for index, one in enumerate(listed):
            yield from _of_playbook(one, f"{place}/{action}[{index}]", files)


def _of_playbook(one: Any, place: str, files: Collection[str]) -> Iterator[str]:
    if not isinstance(one, Mapping):
        yield f"{place}: path and order expected"
        return
    for name in ("command", "execute-host"):
        if name in one:
            yield f"{place}/{name}: {_ON_OUR_HOST}"
    yield from _unknown(one, _ENTRY, f"{place}/")
    if not _is_whole(one.get("order")):
        yield f"{place}/order: a whole number expected"
    if not isinstance(one.get("params") or {}, Mapping) or not isinstance(one.get("target_hosts") or [], list):
        yield f"{place}: params as an object and target_hosts as a list expected"
    path = one.get("path")
    if not isinstance(path, str) or not path.startswith(f"{_PACKAGE}/"):
        yield f"{place}/path: a playbook of the package expected, as {_PACKAGE}/Scripts/start.yaml"
        return
    yield from _of_path(path, f"{place}/path", files)


def _of_path(path: str, place: str, files: Collection[str]) -> Iterator[str]:
    inside = posixpath.normpath(path.removeprefix(_PACKAGE).lstrip("/"))
    if "_VAR_" in inside:
        return
    if inside not in files:
        yield f"{place}: the package has no file {inside}"
    elif inside.startswith(_WITHHELD):
        yield f"{place}: files below {_WITHHELD} are not there for playbooks: another folder expected"


def _unknown(body: Mapping[str, Any], known: Collection[str], place: str) -> Iterator[str]:
    for name in body:
        if name not in known and name not in ("command", "execute-host"):
            meant = nearest(str(name), known)
            yield f"{place}{name}: " + (f"did you mean {meant}?" if meant else f"one of {', '.join(known)} expected")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
