"""Commands of a person on a master of a cluster that runs on the lab's machines."""

from __future__ import annotations

import asyncssh
from clouds.lab_process import LabProcess


async def kubectl(lab: LabProcess, master: str, arguments: str) -> str:
    """Return what kubectl prints for the cluster's administrator on the master at this address.

    Raises asyncssh.ProcessError if it fails.
    """
    async with asyncssh.connect(
        master, lab.ssh_port, username="ubuntu", password=lab.machine_password, known_hosts=None
    ) as connection:
        command = f"sudo KUBECONFIG=/etc/kubernetes/admin.conf kubectl {arguments}"
        return str((await connection.run(command, check=True)).stdout)
