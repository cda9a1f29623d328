"""Runs the Ansible playbooks of a package for a phase, as ``ScriptANSIBLE/config.yaml`` lists them (sequences.md 6.8).

ansible-core starts a process for each task and host. A confined process starts none, so the tasks of all hosts are carried out here one
after the other, and their connections are made by paramiko. What Ansible would do on the host of the VNFM (``connection: local``) is
not there: only the machines of the VNF can be reached.
"""

import json
import os
import pickle
import queue
import re
import socket
import sys
import time

import yaml

FOLDER = f"{os.getcwd()}/ansible"  # noqa: PTH109 - as the other modules of a confined process
"""In the folder of this process alone, which is gone when it ends."""
_ACTIONS = {
    "instantiate_end": "instantiation", "terminate_start": "termination", "heal_end": "healing",
    "scale_start": "scale-in", "scale_end": "scale-out",
}
_TYPES = {"scale_start": "SCALE_IN", "scale_end": "SCALE_OUT"}
_NAME = re.compile(r"_VAR_[a-zA-Z_.0-9<>-]+")
_AFTER = re.compile(r"[.<>-]")
_SECRET = re.compile(r"(pass|pwd|_pw|secret|token|credential|priv|key)(?!.*(file|path))", re.IGNORECASE)
_SHORTEST_SECRET = 4
_WAIT_S = 600.0
_LOOK_S = 2.0
_LONGEST_SAID = 500


class Refused(Exception):
    """What cannot be carried out; the text is for the author of the package."""


class Masked:
    """An output without the secrets of the package."""

    def __init__(self, plain):
        self._plain, self._secrets = plain, set()

    def hide(self, name, value):
        """Hide what has a secret name: the value, or in an object or list each one in it."""
        is_secret = bool(_SECRET.search(str(name)))
        if isinstance(value, dict):
            for inner, one in value.items():
                self.hide(f"{name}_" if is_secret else inner, one)
        elif isinstance(value, list):
            for one in value:
                self.hide(name, one)
        elif is_secret and isinstance(value, str | int | float) and not isinstance(value, bool) and len(str(value)) >= _SHORTEST_SECRET:
            # Ansible prints results as JSON.
            self._secrets |= {str(value), json.dumps(str(value))[1:-1], json.dumps(str(value), ensure_ascii=False)[1:-1]}

    def write(self, text):
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return self._plain.write(text)

    def __getattr__(self, name):
        return getattr(self._plain, name)


def substituted(value, known):
    """Return the value with what ``_VAR_<name>`` stands for. Raises Refused naming one that stands for nothing."""
    if isinstance(value, dict):
        return {name: substituted(one, known) for name, one in value.items()}
    if isinstance(value, list):
        return [substituted(one, known) for one in value]
    if not isinstance(value, str):
        return value

    def found(match):
        # A name ends where a known one does, but not within a word: `_VAR_VDU_INSTANCE_IP.conf`, not `_VAR_password` by `_VAR_pass`.
        fitting = [name for name in known if match[0] == name or _AFTER.match(match[0].removeprefix(name))]
        if not fitting:
            raise Refused(f"{match[0]} stands for nothing: known are {', '.join(sorted(known))}")
        name = max(fitting, key=len)
        return f"{known[name]}{match[0].removeprefix(name)}"

    return _NAME.sub(found, value)


def leaving(given, servers):
    """Return the machines that a scaling removes."""
    removed = (given.get("grant_request") or {}).get("removeResources") or ()
    ids = {one["resource"]["resourceId"] for one in removed if one.get("type") == "COMPUTE"}
    return [one for one in servers if one["server_id"] in ids]


def new_ones(given, servers):
    """Return the machines that the operation has made: a machine that was replaced has another id than the one that a heal names."""
    earlier = set(given.get("earlier_servers") or ())
    return [one for one in servers if one["server_id"] not in earlier]


def management_ports(package, given):
    """Return the connection point of each VDU that the Base HOT of the flavour names as output ``mgmt_ip-<VDU>``."""
    info = given["vnf_instance"].get("instantiatedVnfInfo") or {}
    flavour = info.get("flavourId") or (given["request"] or {}).get("flavourId")
    own = f"{package}/BaseHOT/{flavour}"
    found = {}
    for folder, _, files in os.walk(own if os.path.isdir(own) else f"{package}/BaseHOT"):
        for file in files:
            if not file.endswith((".yaml", ".yml")):
                continue
            with open(f"{folder}/{file}", encoding="utf-8") as text:
                body = yaml.safe_load(text)
            outputs = (body.get("outputs") if isinstance(body, dict) else None) or {}
            for name, output in outputs.items():
                path = ((output or {}).get("value") or {}) if isinstance(output, dict) else {}
                path = path.get("get_attr") if isinstance(path, dict) else None
                if str(name).startswith("mgmt_ip-") and isinstance(path, list) and path:
                    found[str(name).removeprefix("mgmt_ip-")] = str(path[0])
    return found


def address_of(server, port_name):
    """Return the address of a machine: of the port of this name, a floating one, or the first one."""
    ports = server.get("ports") or ()
    for port in ports:
        if port_name and port_name in (port["name"], port.get("clone_of")) and port["addresses"]:
            return port["addresses"][0]
    floating = next((port["floating_address"] for port in ports if port.get("floating_address")), None)
    return floating or next((address for port in ports for address in port["addresses"]), None)


def wait_for(address, port, wait_s):
    """Wait until a machine takes connections: it may be booting."""
    end = time.monotonic() + wait_s
    while True:
        try:
            socket.create_connection((address, port), timeout=10).close()
            return
        except PermissionError:
            raise Refused(f"{address} is none of the addresses of this VNF that may be reached") from None
        except OSError as error:
            if time.monotonic() >= end:
                raise Refused(f"{address}, port {port}: no connection within {wait_s:g} s: {error}") from None
            time.sleep(_LOOK_S)


class InMemoryQueue:
    """Takes the place of the queue between processes."""

    def __init__(self):
        self._held = queue.SimpleQueue()

    def put(self, item):
        self._held.put(item)

    def get(self):
        return self._held.get()

    def close(self):
        pass


class Inline:
    """Takes the place of the process of a task: carries the task out at once."""

    exitcode = pid = 0

    def __init__(self, **given):
        self._given, self.worker_id, self.worker_queue = given, given["worker_id"], queue.SimpleQueue()

    def is_alive(self):
        return False

    def close(self):
        pass

    terminate = close

    def start(self):
        from ansible._internal import _task
        from ansible.executor.task_executor import TaskExecutor
        from ansible.executor.task_result import _RawTaskResult

        given = self._given
        names = "host", "task", "task_vars", "play_context", "loader", "shared_loader_obj", "final_q", "variable_manager"
        with _task.TaskContext(given["task"]):
            done = TaskExecutor(*(given[name] for name in names)).run()
            given["final_q"].send_task_result(
                _RawTaskResult(
                    host=given["host"], task=given["task"], return_data=done, task_fields=given["task"].dump_attrs()
                )
            )


class Playbooks:
    """Runs playbooks by the libraries of ansible-core."""

    def __init__(self):
        os.makedirs(f"{FOLDER}/tmp", exist_ok=True)
        with open(f"{FOLDER}/ansible.cfg", "w", encoding="utf-8"):
            pass
        os.environ.update(
            HOME=FOLDER, USER="kubevnfm", LOGNAME="kubevnfm", LANG="C.UTF-8", LC_ALL="C.UTF-8", ANSIBLE_HOME=FOLDER,
            ANSIBLE_CONFIG=f"{FOLDER}/ansible.cfg", ANSIBLE_LOCAL_TEMP=f"{FOLDER}/tmp", ANSIBLE_NOCOLOR="1",
            ANSIBLE_NOCOWS="1", ANSIBLE_HOST_KEY_CHECKING="False", ANSIBLE_DEPRECATION_WARNINGS="False",
            ANSIBLE_PARAMIKO_RECORD_HOST_KEYS="False", ANSIBLE_LOCALHOST_WARNING="False",
        )
        import ansible.executor.task_queue_manager as manager
        import ansible.plugins.strategy as strategy
        from ansible import context
        from ansible.module_utils.common.collections import ImmutableDict
        from ansible.plugins.loader import init_plugin_loader

        sends = {name: vars(manager.FinalQueue)[name] for name in vars(manager.FinalQueue) if name.startswith("send_")}
        manager.FinalQueue = type("FinalQueue", (InMemoryQueue,), sends)
        strategy.WorkerProcess = Inline
        context.CLIARGS = ImmutableDict(
            connection="paramiko_ssh", forks=1, become=None, become_method="sudo", become_user=None, check=False, diff=False,
            verbosity=0, syntax=False, start_at_task=None, remote_user=None, tags=["all"], skip_tags=[], listhosts=False,
            listtasks=False, listtags=False,
        )
        init_plugin_loader([])

    def run(self, path, hosts, variables):
        """Raise Refused naming play, task and host of the last failure, or that no play is for these hosts."""
        from ansible.errors import AnsibleError
        from ansible.executor.playbook_executor import PlaybookExecutor
        from ansible.inventory.manager import InventoryManager
        from ansible.parsing.dataloader import DataLoader
        from ansible.vars.manager import VariableManager

        loader = DataLoader()
        loader.set_basedir(path.rpartition("/")[0])
        inventory = InventoryManager(loader=loader, sources=[",".join(hosts) + ","])
        manager = VariableManager(loader=loader, inventory=inventory)
        manager._extra_vars = variables
        executor = PlaybookExecutor([path], inventory, manager, loader, passwords={})
        where, failures, matched = {"play": "?", "task": "?"}, [], []
        sent = executor._tqm.send_callback

        def noted(method, *args, **kwargs):
            if method == "v2_playbook_on_play_start":
                where.update(play=args[0].get_name().strip(), task="?")
                matched.append(where["play"])
            elif method == "v2_playbook_on_no_hosts_matched":
                matched.pop()
            elif method in ("v2_playbook_on_task_start", "v2_playbook_on_handler_task_start"):
                where["task"] = args[0].get_name().strip()
            elif method.startswith(("v2_runner_on_", "v2_runner_item_on_", "v2_runner_retry")) and args:
                said = self._said(args[0])
                if method in ("v2_runner_on_failed", "v2_runner_on_unreachable") and not kwargs.get("ignore_errors"):
                    failures.append((where["play"], where["task"], args[0]._host.get_name(), said))
            return sent(method, *args, **kwargs)

        executor._tqm.send_callback = noted
        try:
            status = executor.run()
        except AnsibleError as error:
            raise Refused(" ".join(str(error).split())[:_LONGEST_SAID]) from None
        if status == 0 and matched:
            return
        if status == 0:
            raise Refused(f"no play is for {', '.join(hosts)}: hosts: all expected, or one of these addresses")
        if not failures:
            raise Refused(f"it ended with status {status}")
        play, task, host, said = failures[-1]
        raise Refused(f"play {play}, task {task}, host {host}: {said or 'failed'}")

    def _said(self, result):
        """Return what a result says, but for that of a task with `no_log`, whose exception Ansible would show all the same."""
        data = getattr(result, "_return_data", None)
        if not isinstance(data, dict):
            return ""
        if data.get("_ansible_no_log"):
            for one in (data, *(data.get("results") or ())):
                if isinstance(one, dict):
                    one.pop("exception", None)
            return "it failed; its output is hidden, as no_log says"
        return " ".join(str(data.get("msg") or "").split())[:_LONGEST_SAID]


def main(given, output):
    """Run the playbooks of the phase, VDU after VDU."""
    action, kind = _ACTIONS.get(given["operation"]), _TYPES.get(given["operation"])
    if action is None or (kind is not None and (given["request"] or {}).get("type") != kind):
        print(f"no playbooks for {given['operation']}")
        return
    package = given["tmp_csar_dir"]
    with open(sys.argv[0], encoding="utf-8") as file:
        config = yaml.safe_load(file)
    servers = list((given.get("stack") or {}).get("servers") or ())
    if action == "scale-in":
        chosen = leaving(given, servers)
    else:
        chosen = new_ones(given, servers) if action in ("scale-out", "healing") else servers
    ports = management_ports(package, given)
    addresses = {}
    for server in servers:
        address = address_of(server, ports.get(server["vdu_id"]))
        if address is not None:
            addresses.setdefault(server["vdu_id"], []).append(address)
    parameters = given.get("instantiated_with") or (given["request"] or {}).get("additionalParams") or {}
    known = dict(config.get("configurable_properties") or {})
    known |= {f"_VAR_{name}": value for name, value in parameters.items() if isinstance(value, str | int | float)}
    known["_VAR_vnf_package_path"] = package
    for name, value in known.items():
        output.hide(name, value)
    playbooks, vdus = Playbooks(), config["vdus"]
    for vdu in sorted(vdus, key=lambda name: vdus[name]["config"]["order"]):
        app, port = vdus[vdu]["config"]["vm_app_config"], ports.get(vdu)
        listed = sorted(app.get(action) or (), key=lambda one: one["order"])
        for server in [one for one in chosen if one["vdu_id"] == vdu] if listed else ():
            address = address_of(server, port)
            if address is None:
                raise Refused(f"{vdu}: the machine {server['name']} has no address")
            here = known | {"_VAR_VDU_INSTANCE_IP": address, "_VAR_VDU_INSTANCE_NAME": vdu}
            for one in listed:
                run_one(playbooks, one, app, address, addresses, here, package, vdu, output)


def run_one(playbooks, entry, app, address, addresses, known, package, vdu, output):
    """Run a playbook on the machine, or on those that the entry names."""
    path = os.path.normpath(substituted(entry["path"], known))
    if not path.startswith(f"{package}/") or not os.path.isfile(path):
        raise Refused(f"{vdu}: {entry['path']}: no such file in the package")
    login = substituted({name: app[name] for name in ("username", "password", "priv_key_file") if app.get(name)}, known)
    named = substituted(entry.get("target_hosts") or [], known)
    hosts = [host for one in named for host in addresses.get(str(one), [str(one)])] or [address]
    first = {name: each[0] for name, each in addresses.items()}
    variables = {"host": address, "node_pair_ip": first.get(app.get("node_pair")), **first}
    variables |= substituted(entry.get("params") or {}, known)
    for mine, theirs in (("username", "ansible_user"), ("password", "ansible_password")):
        if mine in login:
            variables[theirs] = str(login[mine])
    if "priv_key_file" in login:
        variables["ansible_ssh_private_key_file"] = login["priv_key_file"]
    for name, value in (*variables.items(), *login.items()):
        output.hide(name, value)
    variables["ansible_connection"] = "paramiko_ssh"
    if entry.get("ansible_version"):
        print(f"{vdu}: {entry['ansible_version']} is asked for; the installed version of ansible-core is used")
    where = path.removeprefix(f"{package}/")
    print(f"{vdu}: {where} on {', '.join(hosts)}")
    try:
        port = str(variables.get("ansible_port") or 22)
        if not port.isdecimal():
            raise Refused("params: a port number expected as ansible_port")
        for host in hosts:
            wait_for(host, int(port), float(app.get("connection_wait_timeout") or _WAIT_S))
        playbooks.run(path, hosts, variables)
    except Refused as error:
        raise Refused(f"{vdu}: {where}: {error}") from None


if __name__ == "__main__":
    given = pickle.load(sys.stdin.buffer)
    sys.stdout = sys.stderr = Masked(sys.stderr)
    try:
        main(given, sys.stdout)
    except Refused as error:
        print(error)
        sys.exit(1)
