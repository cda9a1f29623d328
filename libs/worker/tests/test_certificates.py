"""The certificates in the files of a process, as its readiness and its reports name them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kubevnfm_kit.settings import ProcessSettings
from kubevnfm_worker import certificates
from kubevnfm_worker.certificates import CertificateFile, certificate_files, certificates_part
from kubevnfm_worker.health import Lack
from pydantic import SecretStr
from servers.certificates import Authority


class SetClock:
    """A clock that a test sets."""

    at = datetime.now(UTC)

    def now(self) -> datetime:
        return self.at


class Settings(ProcessSettings):
    """Those of a service with certificates of every kind."""

    internal_token: SecretStr = SecretStr("t")
    keys: SecretStr = SecretStr("k")
    outbound_ca_file: Path | None = None
    nfvo_tls_certificate: Path | None = None
    package_trust_anchors: Path | None = None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    monkeypatch.setattr(certificates, "_READ_EVERY_S", 0.0)
    return SetClock()


async def named(files: dict[str, CertificateFile], clock: SetClock) -> Sequence[Lack]:
    return await certificates_part(files, clock).look()


def test_every_file_with_certificates_that_settings_name_is_known_and_no_key() -> None:
    """API-191: those of the URLs of database and broker, too."""
    path = Path("/etc/tls")
    settings = Settings(
        tls_certificate=path / "a.crt",
        tls_key=path / "a.key",
        tls_client_ca=path / "clients.pem",
        internal_tls_ca=path / "internal.pem",
        outbound_ca_file=path / "out.pem",
        nfvo_tls_certificate=path / "nfvo.crt",
        package_trust_anchors=path / "signers.pem",
        mongo_url=SecretStr(
            "mongodb://u:word-9@a:1,b:2/?tls=true&tlsCAFile=/db/ca.pem&tlsCertificateKeyFile=/db/c.pem"
        ),
        amqp_url=SecretStr("amqps://u:word-9@mq/?cafile=/mq/ca.pem&certfile=/mq/c.crt&keyfile=/mq/c.key"),
    )
    found = certificate_files(settings)
    assert {name: (str(each.path), each.is_of_cas) for name, each in found.items()} == {
        "tls_certificate": ("/etc/tls/a.crt", False),
        "tls_client_ca": ("/etc/tls/clients.pem", True),
        "internal_tls_ca": ("/etc/tls/internal.pem", True),
        "outbound_ca_file": ("/etc/tls/out.pem", True),
        "nfvo_tls_certificate": ("/etc/tls/nfvo.crt", False),
        "package_trust_anchors": ("/etc/tls/signers.pem", True),
        "mongo_url tlsCAFile": ("/db/ca.pem", True),
        "mongo_url tlsCertificateKeyFile": ("/db/c.pem", False),
        "amqp_url cafile": ("/mq/ca.pem", True),
        "amqp_url certfile": ("/mq/c.crt", False),
    }
    assert "word-9" not in str(found)


async def test_a_certificate_is_named_14_days_before_its_end_until_it_is_replaced(
    tmp_path: Path, clock: SetClock
) -> None:
    """API-191."""
    ca = Authority(tmp_path, valid=timedelta(days=30))
    pair = ca.issue("server")
    files = {"tls_certificate": CertificateFile(pair.certificate), "gone": CertificateFile(tmp_path / "none")}
    assert await named(files, clock) == []
    clock.at += timedelta(days=16, hours=1)
    (soon,) = await named(files, clock)
    assert (soon.of, soon.is_blocking, soon.is_vital) == ("tls_certificate", False, False)
    assert soon.ends_at is not None
    assert timedelta(days=13) < soon.ends_at - clock.at < timedelta(days=14)
    assert f"tls_certificate ({pair.certificate}) ends at" in soon.text
    assert str(tmp_path) not in soon.shown
    clock.at += timedelta(days=20)
    assert "has ended at" in (await named(files, clock))[0].text
    ca.valid = timedelta(days=60)
    ca.issue("server")
    assert await named(files, clock) == []


async def test_a_chain_ends_with_its_first_certificate_and_a_ca_is_replaced_beside_the_old_one(
    tmp_path: Path, clock: SetClock
) -> None:
    """API-191."""
    short, long = Authority(tmp_path, "short"), Authority(tmp_path, "long", valid=timedelta(days=90))
    both = tmp_path / "both.pem"
    both.write_bytes(b"# ours\n-----END CERTIFICATE-----\n" + long.file.read_bytes() + short.file.read_bytes())
    files = {"chain": CertificateFile(both), "internal_tls_ca": CertificateFile(both, is_of_cas=True)}
    assert [each.of for each in await named(files, clock)] == ["chain", "internal_tls_ca"]
    clock.at += timedelta(hours=2)
    assert [each.of for each in await named(files, clock)] == ["chain"], (
        "the earlier CA has ended: the other one counts"
    )
    clock.at += timedelta(days=91)
    assert [each.of for each in await named(files, clock)] == ["chain", "internal_tls_ca"]
    both.write_bytes(b"-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----\n" * 3)
    assert await named(files, clock) == []
    many = {f"c{number}": CertificateFile(short.file) for number in range(20)}
    assert len(await named(many, clock)) == 5
