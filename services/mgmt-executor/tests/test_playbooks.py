"""Ansible playbooks of packages: in the sandbox, on machines with a real sshd (sequences.md 6.8)."""

from __future__ import annotations

import asyncio
import io
import runpy
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from contracts.sandbox_kernel import needs_confinement
from kubevnfm_events.mgmt import ANSIBLE, RunScript
from kubevnfm_mgmt_executor.domain.scripts import ScriptFailed
from kubevnfm_sandbox.runs import Limits, ScriptRefused
from kubevnfm_sandbox.shim import ANSIBLE_RUNNER, TACKER_SHIM
from kubevnfm_secrets import KeyRing, hide
from kubevnfm_store.sqlite.store import SqliteStore
from servers.openssh import OpenSsh, openssh
from worlds.package_scripts import PACKAGE, PackageScripts

PASSWORD = "hunter2-hunter2"
OF_REQUEST = "swordfish-15"
CONFIG = """
configurable_properties: {{_VAR_user: {user}, _VAR_word: {password}}}
vdus:
  VDU2: {{config: {{order: 1, vm_app_config: {{username: _VAR_user, instantiation: [
    {{path: _VAR_vnf_package_path/Scripts/none.yaml, order: 0}}]}}}}}}
  VDU1:
    config:
      order: 0
      vm_app_config:
        type: ansible
        username: _VAR_user
        priv_key_file: _VAR_vnf_package_path/Scripts/key
        connection_wait_timeout: 30
        instantiation:
        - path: _VAR_vnf_package_path/Scripts/second.yaml
          params: {{ansible_port: {port}, ansible_python_interpreter: {python}, folder: {folder}}}
          order: 1
        - path: _VAR_vnf_package_path/Scripts/first.yaml
          params: {{word_password: _VAR_word, asked: _VAR_asked_password, ansible_port: {port}, ansible_python_interpreter: {python}, folder: {folder}}}
          order: 0
"""
FIRST = """
- name: Configure the machine
  hosts: all
  gather_facts: false
  tasks:
  - name: Write a file
    copy: {content: "{{ host }} {{ word_password }} {{ asked }}", dest: "{{ folder }}/first"}
  - include_role: {name: mine}
  - debug: {msg: "the words are {{ word_password }} and {{ asked }}"}
"""
SECOND = """
- name: Look at the machine
  hosts: all
  gather_facts: false
  tasks:
  - name: Read what the first has written
    command: cat {{ folder }}/first
  - name: Ask the host of the VNFM
    command: touch {{ folder }}/local
    delegate_to: localhost
"""


class Playbooks(PackageScripts):
    """A package of playbooks for the machines behind a sshd."""

    async def run(self, *, addresses: tuple[str, ...], reach: tuple[str, ...], **given: Any) -> str:
        """Run the phase; return the output."""
        servers = [
            {
                "name": "VDU1", "vdu_id": "VDU1", "vnfc_id": f"v{n}", "server_id": f"s{n}", "stack_id": f"k{n}",
                "ports": [{"name": "CP1", "addresses": [address]}],
            }
            for n, address in enumerate(addresses)
        ]  # fmt: skip
        facts = {
            "operation": "instantiate_end",
            "request": {"additionalParams": {"asked_password": OF_REQUEST}},
            "vnf_instance": {"id": "inst-1", "instantiatedVnfInfo": {}},
            "stack": {"servers": servers},
        }
        command = RunScript(
            vnf_instance_id="inst-1",
            package=PACKAGE,
            file="ScriptANSIBLE/config.yaml",
            driver_class=ANSIBLE,
            task="instantiate_end",
            given=hide({**facts, **given}),
            folders={"tmp_csar_dir": PACKAGE},
            reach=reach,
        )
        answer = (await self.ask(command)).answer
        assert (answer.edits, answer.vim) == ((), None)
        return await self.log()

    def fill(self, **values: Any) -> None:
        files = {"ScriptANSIBLE/config.yaml": CONFIG.format(**values), "Scripts/first.yaml": FIRST}
        role = "- template: {src: role.j2, dest: '{{ folder }}/role'}\n"
        files |= {"Scripts/roles/mine/tasks/main.yaml": role, "Scripts/roles/mine/templates/role.j2": "of {{ host }}\n"}
        for name, text in {**files, "Scripts/second.yaml": SECOND}.items():
            (self.package / name).parent.mkdir(parents=True, exist_ok=True)
            (self.package / name).write_text(text)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    needs_confinement()
    async with SqliteStore.open(tmp_path / "store.db") as opened:
        yield opened


def a_package(folder: Path, store: SqliteStore, sshd: OpenSsh | None = None, port: int = 22) -> Playbooks:
    port = sshd.port if sshd is not None else port
    limits = Limits(timeout_s=300)
    package = Playbooks(folder, store, KeyRing([b"0" * 32]), limits, ssh_port=port)
    user = sshd.username if sshd is not None else "u"
    package.fill(user=user, password=PASSWORD, port=port, python=Path(sys.executable).resolve(), folder=folder)
    if sshd is not None:
        (package.package / "Scripts/key").write_text(sshd.private_key)
    return package


@pytest.mark.deep
@pytest.mark.server
async def test_playbooks_configure_machines_in_their_order_and_reach_no_other_host(
    tmp_path: Path, store: SqliteStore
) -> None:
    """SEQ 6.8: the output is the task's, without the secrets of package and request; an error names play, task and host."""
    async with openssh(tmp_path / "sshd") as sshd:
        package = a_package(tmp_path, store, sshd)
        with pytest.raises(ScriptFailed) as failed:
            await package.run(addresses=("127.0.0.1",), reach=("127.0.0.1",))
    said = str(failed.value)
    assert "VDU1: Scripts/second.yaml: play Look at the machine, task Ask the host of the VNFM, host 127.0.0.1" in said
    assert (tmp_path / "first").read_text() == f"127.0.0.1 {PASSWORD} {OF_REQUEST}"
    assert (tmp_path / "role").read_text() == "of 127.0.0.1\n"
    assert not (tmp_path / "local").exists()
    log = await package.log()
    assert "the words are *** and ***" in log
    assert log.index("Scripts/first.yaml on 127.0.0.1") < log.index("TASK [Read what the first has written]")
    for text in (said, log, *(each.message for each in package.news)):
        assert not {PASSWORD, OF_REQUEST} & set(str(text).split())


async def test_playbooks_reach_the_machines_of_the_vnf_alone(tmp_path: Path, store: SqliteStore) -> None:
    """SEQ 6.8: a phase without playbooks has no work; a name that stands for nothing is in the error."""
    package = a_package(tmp_path, store)
    with pytest.raises(ScriptFailed, match=r"VDU1: Scripts/first.yaml: 10\.0\.0\.7 is none of the addresses"):
        await package.run(addresses=("10.0.0.7",), reach=("10.0.0.8",))
    assert "no playbooks for scale_start" in await package.run(addresses=(), reach=(), operation="scale_start")
    (package.package / "ScriptANSIBLE/config.yaml").write_text(CONFIG.replace("_VAR_word}", "_VAR_none}").format(
        user="u", password=PASSWORD, port=22, python="p", folder="f"
    ))  # fmt: skip
    with pytest.raises(ScriptFailed, match="_VAR_asked_password stands for nothing"):
        await package.run(addresses=("10.0.0.8",), reach=("10.0.0.8",), request={})


@pytest.mark.parametrize(
    ("book", "why"),
    [
        ("- hosts: web\n  tasks: [{command: id}]", r"no play is for 127\.0\.0\.1: hosts: all expected"),
        pytest.param(
            "- hosts: web\n- hosts: all\n  gather_facts: false\n  tasks:\n  - fail: {msg: the word swordfish-16}\n    no_log: true",
            "play all, task fail, host 127.0.0.1: it failed; its output is hidden",
            marks=pytest.mark.deep,
        ),
        pytest.param("- hosts: all\n  tasks: [{no_module: x}]", "first.yaml: couldn't resolve", marks=pytest.mark.deep),
    ],
)
async def test_a_playbook_that_does_nothing_or_fails_says_why_in_a_sentence(
    tmp_path: Path, store: SqliteStore, book: str, why: str
) -> None:
    """SEQ 6.8: ansible-playbook ends with 0 if no host is matched; what a task hides is in no error."""
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0) as listener:
        package = a_package(tmp_path, store, port=listener.sockets[0].getsockname()[1])
        (package.package / "Scripts/first.yaml").write_text(book)
        with pytest.raises(ScriptFailed, match=why) as failed:
            await package.run(addresses=("127.0.0.1",), reach=("127.0.0.1",))
    assert "Traceback" not in str(failed.value)
    assert "swordfish-16" not in f"{failed.value}{await package.log()}"


def test_what_a_playbook_gets_is_of_the_machines_and_names_that_are_meant(tmp_path: Path) -> None:
    """SEQ 6.8: a machine that a heal has replaced has another id than the one that the request names."""
    shim = runpy.run_path(str(TACKER_SHIM / f"{ANSIBLE_RUNNER}.py"))
    known = {"_VAR_pass": "x", "_VAR_VDU_INSTANCE_IP": "10.0.0.7"}
    assert shim["substituted"](["_VAR_VDU_INSTANCE_IP.conf", "a/_VAR_pass/b"], known) == ["10.0.0.7.conf", "a/x/b"]
    with pytest.raises(shim["Refused"], match="_VAR_password stands for nothing"):
        shim["substituted"]({"a": "_VAR_password"}, known)
    servers = [{"server_id": name, "stack_id": "k"} for name in ("old", "new")]
    assert shim["new_ones"]({"earlier_servers": ["old", "gone"]}, servers) == servers[1:]
    written = io.StringIO()
    masked = shim["Masked"](written)
    masked.hide(
        "params",
        {
            "login": {"password": ["listed-1", {"first": "inner-2"}]},
            "pin_secret": 12345678,
            "ask_password": True,
            "plain": "seen",
        },
    )
    masked.hide("password", 'a"b\\c')
    masked.write(r"listed-1 inner-2 12345678 seen a\"b\\c True")
    assert written.getvalue() == "*** *** *** seen *** True"
    for flavour in ("large", "small"):
        (tmp_path / "BaseHOT" / flavour).mkdir(parents=True)
        output = f"outputs: {{mgmt_ip-VDU1: {{value: {{get_attr: [CP_{flavour}, fixed_ips]}}}}}}"
        (tmp_path / "BaseHOT" / flavour / "top.yaml").write_text(output)
        instance = {"instantiatedVnfInfo": {"flavourId": flavour}}
        ports = shim["management_ports"](str(tmp_path), {"vnf_instance": instance, "request": None})
        assert ports == {"VDU1": f"CP_{flavour}"}
    assert shim["management_ports"](str(tmp_path), {"vnf_instance": {}, "request": {"flavourId": "large"}}) == {
        "VDU1": "CP_large"
    }


async def test_without_ansible_playbooks_are_refused_with_what_to_install(
    tmp_path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEQ 6.8."""
    monkeypatch.setattr("kubevnfm_mgmt_executor.adapters.script_process.ANSIBLE_MODULES", ("ansible", "no_such_module"))
    with pytest.raises(ScriptRefused, match=r"pip install 'kubevnfm-mgmt-executor\[ansible\]'"):
        await a_package(tmp_path, store).run(addresses=("10.0.0.8",), reach=("10.0.0.8",))
