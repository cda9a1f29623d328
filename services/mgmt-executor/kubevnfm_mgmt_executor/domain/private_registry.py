"""The driver ``mgmt-drivers-private-registry``: makes the VNF's machine a private container registry (sequences.md 1.6, B4).

A machine that a heal has replaced is made a registry again, from the parameters of the instantiation. Images on the machine's
own disk are lost then.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Mapping
from functools import partial
from typing import Final, TypeVar

import bcrypt
from kubevnfm_cluster.registry_vnf import (
    REGISTRY_ROOT,
    REGISTRY_VNF,
    RegistryInstallation,
    check_key_of_certificate,
    read_registry,
)
from kubevnfm_events.mgmt import RunPhase
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import map_secrets

from kubevnfm_mgmt_executor.domain.driver import MACHINE_PHASES, Driver, PhaseResult, Tools, nothing
from kubevnfm_mgmt_executor.domain.kubernetes.registry_files import SCRIPT, curl_login, own_scripts
from kubevnfm_mgmt_executor.domain.logins import bastion, login
from kubevnfm_mgmt_executor.domain.node_session import ScriptAnswer
from kubevnfm_mgmt_executor.domain.ports import Address, Earlier
from kubevnfm_mgmt_executor.domain.recorder import NodeId, TaskResult

NODE: Final = "private-registry"
_REACH_S: Final = 600.0
_INSTALL_S: Final = 2700.0
"""Tacker's limit for an installation."""
_START_S: Final = 120
"""How long Docker, and then the registry, may take to answer."""


_BCRYPT64: Final = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_BASE64: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

A = TypeVar("A", bound=ScriptAnswer)


class ImageAnswer(ScriptAnswer):
    """The result of ``image``."""

    wanted: bool = False
    """Whether the image of the package is to be uploaded."""


class Installation:
    """One run of the installation: what is asked for, the files, and the session."""

    def __init__(
        self,
        command: RunPhase,
        tools: Tools,
        asked: RegistryInstallation,
        image: bytes | None,
        files: Mapping[str, bytes],
    ) -> None:
        """``files``: the script and what it expects beside its parameters."""
        (node,) = command.nodes
        self._tools, self._asked, self._image, self._files = tools, asked, image, files
        self._is_heal = command.phase == "heal_end"
        self._owner, self._address = command.vnf_instance_id, node.nic_address
        self._node = NodeId(node.vnfc_id, NODE)
        way = bastion(asked.bastion, tools.reveal)
        self.session = tools.session(
            Address(NODE, command.vnf_instance_id, node.vnfc_id, node.ssh_address, asked.ssh_port, way),
            login(asked.ssh_username, asked.ssh_password, asked.ssh_private_key, tools.reveal),
            SCRIPT,
            ready_within_s=_REACH_S,
        )

    async def run(self) -> None:
        """Run the tasks one after the other. Each asks the machine first what is left to do."""
        works = {
            "reach": self._reach,
            "copy": self._copy,
            "engine": self._engine,
            "image": self._load,
            "serve": self._serve,
        }
        self._tools.recorder.total = len(works)
        for task, work in works.items():
            await self._tools.recorder.perform(self._node, task, work)

    async def _reach(self, _: Earlier | None) -> TaskResult:
        await self.session.reach(partial(self._tools.recorder.progress, self._node, "reach"))
        return TaskResult()

    async def _copy(self, _: Earlier | None) -> TaskResult:
        await self.session.copy(self._files)
        return TaskResult()

    async def _engine(self, _: Earlier | None) -> TaskResult:
        proxy, reveal = self._asked.proxy, self._tools.reveal
        values = {
            "HTTP_PROXY_URL": reveal(proxy.http_proxy) if proxy.http_proxy is not None else "",
            "HTTPS_PROXY_URL": reveal(proxy.https_proxy) if proxy.https_proxy is not None else "",
            "NO_PROXY_LIST": ",".join(dict.fromkeys([*proxy.exceptions, "127.0.0.1", "localhost"])),
        }
        answer = await self._script("engine", values, ScriptAnswer)
        return TaskResult(changed=answer.changed)

    async def _load(self, _: Earlier | None) -> TaskResult:
        digest = hashlib.sha256(self._image).hexdigest() if self._image is not None else ""
        values = {"IMAGE_SHA256": digest, "IMAGE_NAME": self._asked.x_image}
        answer = await self._script("image", values, ImageAnswer)
        if answer.wanted and self._image is not None:
            await self.session.copy({"image.tar": self._image})
            answer = await self._script("image", values, ImageAnswer)
        return TaskResult(changed=answer.changed)

    async def _serve(self, _: Earlier | None) -> TaskResult:
        answer = await self._script("serve", {"ADDRESS": self._address, "PORT": str(self._asked.port_no)}, ScriptAnswer)
        lost = "the images that were pushed before are lost with the earlier machine"
        return TaskResult(changed=answer.changed, remark=lost if self._is_heal and answer.changed else "")

    async def _script(self, task: str, values: Mapping[str, str], answer: type[A]) -> A:
        common = {"OWNER": self._owner, "TIMEOUT_S": str(_START_S)}
        return await self.session.run_script(task, {**common, **values}, timeout_s=_INSTALL_S, answer=answer)


async def install(command: RunPhase, tools: Tools) -> PhaseResult:
    """Install Docker, load the image, run the registry and wait until it answers.

    Raises: InvalidInput, Unprocessable by field before the first login; errors of machines.
    """
    # In clear, because the form of a sealed secret cannot be checked; in a thread, because a key may have to be opened.
    given = map_secrets({REGISTRY_VNF: command.parameters.get(REGISTRY_VNF)}, tools.reveal)
    asked = await asyncio.to_thread(read_registry, given)
    if len(command.nodes) != 1:
        raise Unprocessable("nodes", f"{len(command.nodes)} machines: one expected for a private registry")
    image = await _file(tools, "image_path", asked.image_path)
    files = {
        **await own_scripts(tools.own_files, SCRIPT),
        **await _configuration(command.vnf_instance_id, asked, tools),
    }
    installation = Installation(command, tools, asked, image, files)
    try:
        await installation.run()
        await installation.session.clean()
    finally:
        await installation.session.close()
    return PhaseResult()


async def _configuration(instance_id: str, asked: RegistryInstallation, tools: Tools) -> Mapping[str, bytes]:
    """Return the files of the registry's certificate and login."""
    found: dict[str, bytes] = {}
    certificate = await _file(tools, "x_certificate_path", asked.x_certificate_path)
    if certificate is not None and asked.x_certificate_key is not None:
        key = tools.reveal(asked.x_certificate_key)
        check_key_of_certificate(certificate, key)
        found |= {"tls.crt": certificate, "tls.key": key.encode()}
    if asked.x_username is not None and asked.x_password is not None:
        password = tools.reveal(asked.x_password)
        # In a thread: bcrypt is slow on purpose.
        found["htpasswd"] = await asyncio.to_thread(htpasswd, asked.x_username, password, salt=instance_id)
        found["registry.curl"] = curl_login(asked.x_username, password)
    return found


async def _file(tools: Tools, attribute: str, path: str | None) -> bytes | None:
    if path is None:
        return None
    content = await tools.package.read(path)
    if content is None:
        raise Unprocessable(f"{REGISTRY_ROOT}/{attribute}", f"the package has no file {path}")
    return content


def htpasswd(user: str, password: str, *, salt: str) -> bytes:
    """Return the file by which the registry knows its login; bcrypt is the one form that it takes.

    ``salt``: a text that no other registry has. The same one gives the same file, so that a repeat finds nothing to change.
    """
    # bcrypt takes 16 bytes in an alphabet of its own; `gensalt` has no other way to set them.
    digest = hashlib.sha256(f"{salt} {user}".encode()).digest()
    encoded = base64.b64encode(digest[:16]).decode().rstrip("=")
    own = encoded.translate(str.maketrans(_BASE64, _BCRYPT64))
    return f"{user}:".encode() + bcrypt.hashpw(password.encode(), f"$2b$10${own}".encode()) + b"\n"


PHASES: Final[Driver] = {
    **MACHINE_PHASES,
    "instantiate_end": install,
    # The machine goes as it is.
    "heal_start": nothing,
    "heal_end": install,
}
