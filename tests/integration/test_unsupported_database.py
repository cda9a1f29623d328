"""A service does not start on a database server whose writes are not atomic."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.mongodb import MongoServer, old_ferretdb
from servers.ports import free_port
from servers.six_processes import SixProcesses

__all__ = ["old_ferretdb"]

pytestmark = pytest.mark.server


def test_a_service_ends_with_the_reason(old_ferretdb: MongoServer, tmp_path: Path) -> None:
    six = SixProcesses(tmp_path / "six", amqp_url=f"amqp://127.0.0.1:{free_port()}/", mongo_url=old_ferretdb.url)
    with pytest.raises(AssertionError):
        six.start_one("vim-registry")
    log = (six.logs / "vim-registry.log").read_text()
    assert log.splitlines()[-1].startswith("vim-registry: the server is FerretDB v1.24.2")
    assert "Traceback" not in log
