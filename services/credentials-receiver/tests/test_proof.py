from __future__ import annotations

import pytest
from kubevnfm_clients import callback
from kubevnfm_clients.callback import master_keys
from kubevnfm_credentials_receiver.domain.errors import NotSigned
from kubevnfm_credentials_receiver.domain.proof import SKEW_S, VerifiedSender, check_body, verify
from kubevnfm_secrets import KeyRing

FIRST, SECOND = bytes(range(32)), bytes(range(32, 64))
NOW = 1_790_000_000
NONCE = "q83vEjRWeJCrze8SNFZ4kA"
BODY = b'{"schemaVersion":"1"}'


def headers(*, master: bytes = FIRST, timestamp: int = NOW, nonce: str = NONCE, body: bytes = BODY) -> dict[str, str]:
    return dict(
        callback.signed_headers(
            callback.instance_key(master, "vnf-a.1"),
            body,
            vnf_instance_id="vnf-a.1",
            timestamp=timestamp,
            nonce=nonce,
            idempotency_key="k",
        )
    )


def verified(
    given: dict[str, str], *, body: bytes = BODY, target: str = callback.PATH, method: str = "POST"
) -> VerifiedSender:
    sender = verify(given, method=method, target=target, keys=[FIRST, SECOND], now=NOW)
    check_body(sender, body)
    return sender


def test_a_signed_request_identifies_its_instance() -> None:
    assert verified(headers()) == VerifiedSender("vnf-a.1", NONCE, int(NOW), callback.sha256_hex(BODY))


def test_the_key_id_can_name_the_second_master_key() -> None:
    given = headers(master=SECOND)
    with pytest.raises(NotSigned, match="not signed"):
        verified(given)
    given["X-Vnfm-Key-Id"] += ".k2"
    assert verified(given).vnf_instance_id == "vnf-a.1"


@pytest.mark.parametrize("skew_s", [-SKEW_S, 0, SKEW_S])
def test_the_senders_clock_may_differ_by_the_skew(skew_s: int) -> None:
    assert verified(headers(timestamp=NOW + skew_s))


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"X-Vnfm-Signature": ""}, "missing"),
        ({"X-Vnfm-Timestamp": "yesterday"}, "timestamp"),
        ({"X-Vnfm-Timestamp": str(NOW - SKEW_S - 1)}, "timestamp"),
        ({"X-Vnfm-Timestamp": "9" * 400}, "timestamp"),
        ({"X-Vnfm-Timestamp": str(NOW + 1)}, "signature"),
        ({"X-Vnfm-Key-Id": "vnf-other"}, "signature"),
        ({"X-Vnfm-Key-Id": "unknown"}, "key id"),
        ({"X-Vnfm-Nonce": "short"}, "nonce"),
        ({"X-Vnfm-Nonce": NONCE + "x"}, "signature"),
        ({"X-Vnfm-Content-SHA256": "0" * 64}, "signature"),
        ({"X-Vnfm-Content-SHA256": "zz"}, "hash"),
        ({"X-Vnfm-Signature": "v1=" + "0" * 64}, "signature"),
        ({"X-Vnfm-Signature": "v1=ünicode"}, "signature"),
    ],
)
def test_a_changed_request_is_rejected_with_the_same_text_for_all_causes(changes: dict[str, str], cause: str) -> None:
    with pytest.raises(NotSigned) as refusal:
        verified(headers() | changes)
    assert cause in refusal.value.cause
    assert str(refusal.value) == str(NotSigned("anything"))


def test_path_method_and_body_are_signed() -> None:
    for name, changed in (("target", callback.PATH + "?x=1"), ("method", "PUT")):
        with pytest.raises(NotSigned):
            verified(headers(), **{name: changed})  # type: ignore[arg-type]  # both values are str
    with pytest.raises(NotSigned) as refusal:
        verified(headers(), body=b"{}")
    assert "hash" in refusal.value.cause


def test_one_or_two_master_keys_are_accepted() -> None:
    one = KeyRing.new_key()
    assert len(master_keys(one)) == 1
    assert len(master_keys(f"{one},{KeyRing.new_key()}")) == 2
    for wrong in ("", "c2hvcnQ=", ",".join([one] * 3), "*" * 44):
        with pytest.raises(ValueError, match="master keys") as refusal:
            master_keys(wrong)
        assert one not in str(refusal.value)
