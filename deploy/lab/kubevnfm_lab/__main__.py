"""Run the lab as a process: one JSON line with its endpoints when it is ready; SIGTERM or SIGINT ends it."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

from kubevnfm_lab.lab import Lab, LabSettings
from kubevnfm_lab.machines import MachineSettings, StateDirInUse
from kubevnfm_lab.openstack.identity.api import PATHS
from kubevnfm_lab.openstack.settings import CloudSettings, Durations


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m kubevnfm_lab", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="address of the HTTP server (default: %(default)s)")
    parser.add_argument("--port", type=int, default=0, help="its port; 0: a free one (default: %(default)s)")
    parser.add_argument("--ssh-port", type=int, default=0, help="port of the machines' sshd; 0: a free one")
    parser.add_argument(
        "--listen-on",
        action="append",
        default=[],
        metavar="NETWORK",
        help="machines listen on their addresses in this network as well as in 127.0.0.0/8; this host must have them",
    )
    parser.add_argument("--ready-file", type=Path, help="write the line with the endpoints here too")
    parser.add_argument("--state-dir", type=Path, help="keep the machines' files here; for one lab at a time")
    parser.add_argument("--node-seconds", type=float, default=0.0, help="how long each kubeadm run takes on a machine")
    parser.add_argument("--server-seconds", type=float, default=0.0, help="how long Nova takes to make a server")
    parser.add_argument(
        "--catalog-entry",
        action="append",
        default=[],
        type=_catalog_entry,
        metavar="TYPE=URL",
        help="add a service to Keystone's catalogue, such as nfv-orchestration=http://127.0.0.1:9890",
    )
    return parser.parse_args()


def _catalog_entry(text: str) -> tuple[str, str]:
    kind, _, url = text.partition("=")
    if not kind or urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
        raise argparse.ArgumentTypeError(f"TYPE=URL with an http or https URL expected, got {text!r}")
    if kind in {known for known, _, _ in PATHS}:
        raise argparse.ArgumentTypeError(f"{kind} is a service of the lab itself")
    return kind, url


def _settings(arguments: argparse.Namespace) -> LabSettings:
    return LabSettings(
        host=arguments.host,
        port=arguments.port,
        state_dir=arguments.state_dir,
        cloud=CloudSettings(
            durations=Durations(server_create_s=arguments.server_seconds), catalog=dict(arguments.catalog_entry)
        ),
        machines=MachineSettings(
            ssh_port=arguments.ssh_port,
            reachable_networks=("127.0.0.0/8", *arguments.listen_on),
            seconds_by_program={"kubeadm *": arguments.node_seconds} if arguments.node_seconds else {},
        ),
    )


async def run(settings: LabSettings, ready_file: Path | None) -> None:
    """Run a lab until a signal ends it."""
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end.set)
    async with Lab.start(settings) as lab:
        line = json.dumps(lab.endpoints())
        if ready_file is not None:
            # Renamed when complete: a reader that waits for the file may read it as soon as it exists.
            unfinished = ready_file.with_name(f"{ready_file.name}.tmp")
            await asyncio.to_thread(unfinished.write_text, f"{line}\n")
            unfinished.rename(ready_file)
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
        await end.wait()


def main() -> None:
    """Start the lab from the command line."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    arguments = _arguments()
    try:
        asyncio.run(run(_settings(arguments), arguments.ready_file))
    except StateDirInUse as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
