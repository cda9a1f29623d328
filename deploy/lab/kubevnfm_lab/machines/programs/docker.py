"""docker: images and containers of one machine; a registry container really answers on its port."""

from __future__ import annotations

import base64
import json
import ssl
import tarfile
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from kubevnfm_lab.machines.containers import Container, with_tag
from kubevnfm_lab.machines.jsonpath import render
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.names import resolved
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options
from kubevnfm_lab.machines.registry import REGISTRY_IMAGE, RegistryPort, RegistrySettings, htpasswd
from kubevnfm_lab.machines.wordlist import words

WITH_VALUE = words(
    "-i --input -p --publish -v --volume --name --restart -e --env -f --format --filter -u --username --password -t --time "
    "-n --network --mount --log-driver -H --host --label -l --type --env-file --tail --pull"
)
DOWN = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
DENIED = "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock"


async def docker(call: Call) -> Exit:
    """Run one command of docker."""
    # `-f` is a form for inspect, a filter for ps, and force for rm.
    with_value = [name for name in WITH_VALUE if name != "-f"] if "rm" in call.args[:2] else WITH_VALUE
    given = options(call.args, with_value=with_value)
    # The newer forms name the kind first: `docker image pull` is `docker pull`.
    if given.words[:1] in (["container"], ["image"]):
        given.words.pop(0)
    verb, names = (given.words[0], given.words[1:]) if given.words else ("", [])
    if given.has("--version") and not verb:
        return Exit(0, "Docker version 27.5.1, build 9f9e405\n")
    # The client connects to the daemon before it looks at the command.
    if not call.machine.units.is_active("docker"):
        raise Failed(DOWN)
    if not call.is_root:
        raise Failed(DENIED)
    command = COMMANDS.get(verb)
    if command is None:
        raise Failed(f"docker: '{verb}' is not a docker command.\nSee 'docker --help'")
    return await command(call, given, names)


async def _info(call: Call, given: Options, _: list[str]) -> Exit:
    facts = {
        "ServerVersion": "27.5.1",
        "CgroupDriver": "systemd",
        "Containers": len(call.machine.images.containers),
        "InsecureRegistries": _daemon(call.machine).get("insecure-registries", []),
    }
    form = given.get("-f", "--format")
    if form:
        return Exit(0, _format(form, facts) + "\n")
    return Exit(0, "".join(f" {name}: {value}\n" for name, value in facts.items()))


def _daemon(machine: Machine) -> Mapping[str, Any]:
    file = machine.root / "etc/docker/daemon.json"
    loaded = json.loads(file.read_text() or "{}") if file.exists() else {}
    return loaded if isinstance(loaded, dict) else {}


async def _load(call: Call, given: Options, _: list[str]) -> Exit:
    name = given.get("-i", "--input")
    if not name:
        raise Failed("requested load from stdin, but stdin is empty")
    file = call.path(name)
    if not file.exists():
        raise Failed(f"open {name}: no such file or directory")
    try:
        with tarfile.open(file) as archive:
            member = archive.extractfile("manifest.json")
            manifest = json.load(member) if member else []
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise Failed(f"open {name}: invalid tar header: {error}") from error
    tags = [tag for image in manifest for tag in image.get("RepoTags") or []]
    for tag in tags:
        call.machine.images.pull(tag)
    return Exit(0, "".join(f"Loaded image: {tag}\n" for tag in tags))


async def _pull(call: Call, given: Options, names: list[str]) -> Exit:
    for name in names:
        digest = call.machine.images.pull(name)
        if not given.has("-q", "--quiet"):
            return Exit(0, f"Digest: {digest}\nStatus: Downloaded newer image for {with_tag(name)}\n")
    return Exit()


async def _tag(call: Call, _: Options, names: list[str]) -> Exit:
    source, target = names
    digest = call.machine.images.find(source)
    if digest is None:
        raise Failed(f"Error response from daemon: No such image: {with_tag(source)}")
    call.machine.images.tags[with_tag(target)] = digest
    return Exit()


async def _images(call: Call, given: Options, names: list[str]) -> Exit:
    rows = []
    for tag, digest in call.machine.images.tags.items():
        repository, _, label = tag.rpartition(":")
        if names and names[0] not in (repository, tag):
            continue
        rows.append({"Repository": repository, "Tag": label, "ID": digest.removeprefix("sha256:")[:12]})
    if given.has("-q", "--quiet"):
        return Exit(0, "".join(f"{row['ID']}\n" for row in rows))
    if given.get("--format"):
        return Exit(0, "".join(_format(given.get("--format"), row) + "\n" for row in rows))
    return Exit(0, "REPOSITORY TAG IMAGE ID\n" + "".join(f"{' '.join(row.values())}\n" for row in rows))


async def _run(call: Call, given: Options, names: list[str]) -> Exit:
    images = call.machine.images
    if not names:
        raise Failed('"docker run" requires at least 1 argument.')
    image = with_tag(names[0])
    name = given.get("--name") or f"container_{len(images.containers) + 1}"
    errors = ""
    if images.find(image) is None:
        errors = f"Unable to find image '{image}' locally\n"
        images.pull(image)
    if name in images.containers:
        raise Failed(
            f'{errors}docker: Error response from daemon: Conflict. The container name "/{name}" is already in use by '
            f'container "{images.containers[name].container_id}". You have to remove (or rename) that container to be '
            "able to reuse that name.\nSee 'docker run --help'.",
            125,
        )
    ports = {}
    for published in given.all("-p", "--publish"):
        *host, inside = published.split(":")
        # "127.0.0.1:5000:5000", "5000:5000" and "5000" are all valid.
        ports[inside if "/" in inside else f"{inside}/tcp"] = host[-1] if host else inside
    container = Container(
        name=name,
        image=names[0],
        running=False,
        ports=ports,
        binds=given.all("-v", "--volume"),
        restart=given.get("--restart", default="no"),
        environment=given.all("-e", "--env"),
    )
    # Created before it is started: if the port is taken, the container remains, as it does with Docker.
    images.containers[name] = container
    try:
        await _start_one(call.machine, container)
    except OSError as error:
        port = next(iter(ports.values()), "")
        raise Failed(
            f"{errors}docker: Error response from daemon: driver failed programming external connectivity on endpoint "
            f"{name}: Error starting userland proxy: listen tcp4 0.0.0.0:{port}: bind: address already in use.",
            125,
        ) from error
    for bind in container.binds:
        # The daemon creates missing directories of bind mounts.
        if bind.startswith("/"):
            call.machine.path(bind.split(":")[0]).mkdir(parents=True, exist_ok=True)
    return Exit(0, f"{container.container_id}\n", errors)


async def _start_one(machine: Machine, container: Container) -> None:
    # Only a registry really listens; other containers are records.
    is_registry = container.image.rsplit("/", 1)[-1].split(":")[0].split("@")[0] == REGISTRY_IMAGE
    for port in container.ports.values() if is_registry else ():
        opened = RegistryPort(machine.listening_addresses, int(port), _registry_settings(machine, container))
        await opened.open()
        machine.registries[container.name] = opened
    container.running = True


def _registry_settings(machine: Machine, container: Container) -> RegistrySettings:
    """Return what the registry's variables set. Raises Failed if it would end at once."""
    values = dict(pair.partition("=")[::2] for pair in container.environment)
    tls, certificate = None, values.get("REGISTRY_HTTP_TLS_CERTIFICATE")
    try:
        if certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            key = _behind(machine, container, values.get("REGISTRY_HTTP_TLS_KEY", ""))
            tls.load_cert_chain(_behind(machine, container, certificate), key)
        users = values.get("REGISTRY_AUTH_HTPASSWD_PATH") if values.get("REGISTRY_AUTH") == "htpasswd" else None
        knows = htpasswd(_behind(machine, container, users)) if users is not None else None
    except (OSError, ssl.SSLError) as error:
        raise Failed(f"Error response from daemon: container {container.name}: {error}") from error
    return RegistrySettings(tls, knows)


def _behind(machine: Machine, container: Container, inside: str) -> Path:
    """Return the file on the machine that a bind mount shows at a path of the container."""
    for bind in container.binds:
        source, target = bind.split(":")[:2]
        if inside.startswith(f"{target}/"):
            return machine.path(source) / inside.removeprefix(f"{target}/")
    return machine.path(inside)


def _stop_one(machine: Machine, container: Container) -> None:
    opened = machine.registries.pop(container.name, None)
    if opened:
        opened.close()
    container.running = False


def _named(call: Call, name: str) -> Container:
    containers = call.machine.images.containers
    found = containers.get(name) or next(
        # Docker accepts a prefix of the id; short ones would match names.
        (c for c in containers.values() if len(name) > 3 and c.container_id.startswith(name)),
        None,
    )
    if found is None:
        raise Failed(f"Error response from daemon: No such container: {name}")
    return found


async def _start(call: Call, _: Options, names: list[str]) -> Exit:
    for name in names:
        container = _named(call, name)
        if not container.running:
            await _start_one(call.machine, container)
    return Exit(0, "".join(f"{name}\n" for name in names))


async def _stop(call: Call, _: Options, names: list[str]) -> Exit:
    for name in names:
        _stop_one(call.machine, _named(call, name))
    return Exit(0, "".join(f"{name}\n" for name in names))


async def _restart(call: Call, given: Options, names: list[str]) -> Exit:
    await _stop(call, given, names)
    return await _start(call, given, names)


async def _remove(call: Call, given: Options, names: list[str]) -> Exit:
    for name in names:
        container = _named(call, name)
        if container.running and not given.has("-f", "--force"):
            raise Failed(
                f'Error response from daemon: cannot remove container "/{name}": container is running: stop the container '
                "before removing or force remove"
            )
        _stop_one(call.machine, container)
        del call.machine.images.containers[container.name]
    return Exit(0, "".join(f"{name}\n" for name in names))


async def _ps(call: Call, given: Options, _names: list[str]) -> Exit:
    shown = [c for c in call.machine.images.containers.values() if c.running or given.has("-a", "--all")]
    for wanted in given.all("-f", "--filter"):
        key, _, value = wanted.partition("=")
        if key == "name":
            shown = [c for c in shown if value.strip("^$/") in c.name]
        elif key == "status":
            shown = [c for c in shown if (value == "running") == c.running]
    if given.has("-q", "--quiet"):
        return Exit(0, "".join(f"{c.container_id[:12]}\n" for c in shown))
    rows = [
        {
            "ID": c.container_id[:12],
            "Image": c.image,
            "Status": "Up 1 second" if c.running else "Exited (0)",
            "Names": c.name,
        }
        for c in shown
    ]
    if given.get("--format"):
        return Exit(0, "".join(_format(given.get("--format"), row) + "\n" for row in rows))
    return Exit(0, "CONTAINER ID   IMAGE   STATUS   NAMES\n" + "".join("   ".join(row.values()) + "\n" for row in rows))


async def _inspect(call: Call, given: Options, names: list[str]) -> Exit:
    documents: list[dict[str, Any]] = []
    images = call.machine.images
    for name in names:
        if name in images.containers and given.get("--type") != "image":
            documents.append(_container_document(images.containers[name]))
        elif digest := images.find(name):
            documents.append({"Id": digest, "RepoTags": [tag for tag, each in images.tags.items() if each == digest]})
        else:
            kind = given.get("--type") or "object"
            raise Failed(f"Error: No such {kind}: {name}", stdout="[]\n")
    form = given.get("-f", "--format")
    if form:
        return Exit(0, "".join(_format(form, document) + "\n" for document in documents))
    return Exit(0, json.dumps(documents, indent=4) + "\n")


def _container_document(container: Container) -> dict[str, Any]:
    return {
        "Id": container.container_id,
        "Name": f"/{container.name}",
        "State": {"Status": "running" if container.running else "exited", "Running": container.running, "ExitCode": 0},
        "Config": {"Image": container.image, "Env": container.environment},
        "HostConfig": {
            "RestartPolicy": {"Name": container.restart},
            "Binds": container.binds,
            "PortBindings": {inside: [{"HostIp": "", "HostPort": port}] for inside, port in container.ports.items()},
        },
    }


async def _login(call: Call, given: Options, names: list[str]) -> Exit:
    server = names[0] if names else "docker.io"
    user, password = given.get("-u", "--username"), given.get("-p", "--password")
    if given.has("--password-stdin"):
        password = (await call.read_stdin()).decode().rstrip("\r\n")
    if not user or not password:
        raise Failed("Error: Cannot perform an interactive login from a non TTY device")
    host = server.split(":")[0]
    machine = call.world.machine_at(resolved(call.machine.root, host))
    if machine is None or not any(
        server.endswith(f":{port}")
        for c in machine.images.containers.values()
        if c.running
        for port in c.ports.values()
    ):
        raise Failed(f'Error response from daemon: Get "https://{server}/v2/": dial tcp: lookup {host}: no such host')
    certificates = call.machine.root / "etc/docker/certs.d" / server
    if server not in _daemon(call.machine).get("insecure-registries", []) and not certificates.is_dir():
        raise Failed(
            f'Error response from daemon: Get "https://{server}/v2/": http: server gave HTTP response to HTTPS client'
        )
    call.machine.images.logins[server] = user
    home = call.path(call.env.get("HOME", "/root")) / ".docker"
    home.mkdir(parents=True, exist_ok=True)
    secret = base64.b64encode(f"{user}:{password}".encode()).decode()
    config = home / "config.json"
    # The file contains the password, so its mode is set before its content.
    config.touch(0o600)
    config.write_text(json.dumps({"auths": {server: {"auth": secret}}}))
    return Exit(0, "Login Succeeded\n")


async def _nothing(_call: Call, _given: Options, _names: list[str]) -> Exit:
    return Exit()


def _format(form: str, document: Mapping[str, Any]) -> str:
    """Render the part of Go's templates that scripts use: ``{{.State.Status}}``, ``{{json .State}}``."""
    output, rest = "", form
    while "{{" in rest:
        before, _, after = rest.partition("{{")
        action, _, rest = after.partition("}}")
        as_json = action.strip().startswith("json ")
        path = action.strip().removeprefix("json ").strip()
        value = render("{" + path + "}", document) if path != "." else json.dumps(document)
        output += before + (json.dumps(value) if as_json and path != "." and value[:1] not in '[{"' else value)
    return (output + rest).replace("\\t", "\t")


COMMANDS: Final[Mapping[str, Callable[[Call, Options, list[str]], Awaitable[Exit]]]] = {
    "info": _info,
    "version": _info,
    "load": _load,
    "pull": _pull,
    "tag": _tag,
    "images": _images,
    "ls": _ps,
    "run": _run,
    "start": _start,
    "stop": _stop,
    "restart": _restart,
    "rm": _remove,
    "ps": _ps,
    "inspect": _inspect,
    "login": _login,
    "logout": _nothing,
    "logs": _nothing,
    "rmi": _nothing,
    "push": _nothing,
    "system": _nothing,
}

PROGRAMS: Mapping[str, Program] = {"docker": docker}
