"""The check value of capi.md chapter 10: senders and receivers of other makers are tested with the same numbers."""

from __future__ import annotations

from kubevnfm_clients import callback

MASTER = bytes(range(32))
INSTANCE = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"
BODY = b'{"schemaVersion":"1"}'


def test_the_instance_key_is_the_check_value() -> None:
    key = callback.instance_key(MASTER, INSTANCE)
    assert key.hex() == "31c90137462076a8e3bbfe9da4a3932773170af41d0f090fd9ce6bf87647e98d"


def test_the_signature_is_the_check_value() -> None:
    headers = callback.signed_headers(
        callback.instance_key(MASTER, INSTANCE),
        BODY,
        vnf_instance_id=INSTANCE,
        timestamp=1790000000,
        nonce="q83vEjRWeJCrze8SNFZ4kA",
        idempotency_key="op:uid:hash",
    )
    assert headers["X-Vnfm-Content-SHA256"] == "ced10944d3ec575c3bfc8dfb59d2f75aafd41485686fe0a785cdb02a103f140d"
    assert headers["X-Vnfm-Signature"] == "v1=48bfbad3ab240b0cdf662cb114dd34707929f974a8ba3348050b7a28a9b495d8"
    assert headers["X-Vnfm-Key-Id"] == f"vnf-{INSTANCE}"


def test_every_instance_has_a_key_of_its_own() -> None:
    assert callback.instance_key(MASTER, "a") != callback.instance_key(MASTER, "b")
    assert callback.instance_key(MASTER, "a") != callback.instance_key(bytes(32), "a")
