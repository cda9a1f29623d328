"""The settings of the sender of credentials: what is not understood is refused, without showing keys."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_mgmt_executor.settings import Settings
from pydantic import SecretStr, ValidationError

KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()


def settings(**given: Any) -> Settings:
    return Settings(internal_token=SecretStr("t"), keys=SecretStr("k"), **given)


def test_keys_and_hosts_are_lists_by_commas() -> None:
    """CR-069, CR-070."""
    assert settings().callback_keys == ()
    assert settings(callback_master_keys="").callback_keys == ()
    assert settings(callback_master_keys=SecretStr(f"{KEY},{KEY}")).callback_keys == [bytes(range(32))] * 2
    assert settings(receiver_hosts="a.example, b.example:8443,").allowed_receivers == {"a.example", "b.example:8443"}
    assert settings(receiver_url="").receiver_url is None


@pytest.mark.parametrize(
    "given",
    [
        {"callback_master_keys": SecretStr("c2hvcnQ=")},
        {"receiver_certificate": Path("/x")},
        {"receiver_key": Path("/x")},
        {"sender_access": "all"},
    ],
)
def test_incomplete_settings_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refusal:
        settings(**given)
    assert "c2hvcnQ" not in "; ".join(error["msg"] for error in refusal.value.errors())
