"""Runs the lab with unique passwords, so that tests can detect leaks of them; see lab_process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from kubevnfm_lab.__main__ import run
from kubevnfm_lab.lab import LabSettings
from kubevnfm_lab.machines import MachineSettings
from kubevnfm_lab.openstack.settings import CloudSettings, Credentials

if __name__ == "__main__":
    settings = LabSettings(
        cloud=CloudSettings(credentials=(Credentials(password=os.environ["LAB_VIM_PASSWORD"]),)),
        machines=MachineSettings(password_by_user={"ubuntu": os.environ["LAB_MACHINE_PASSWORD"]}),
    )
    asyncio.run(run(settings, Path(sys.argv[1])))
