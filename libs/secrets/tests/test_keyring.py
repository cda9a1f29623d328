"""Sealing and opening: rotation, keys that are missing, texts that were changed."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from kubevnfm_secrets import KeyRing, UnknownKey

OLD, NEW = KeyRing.new_key(), KeyRing.new_key()
PLAIN = "pässword\n\x00 with everything"


def ring(*keys: str) -> KeyRing:
    return KeyRing.from_text(",".join(keys))


@pytest.mark.parametrize("plain", ["", "a", PLAIN, "x" * 100_000])
def test_a_sealed_text_opens_to_what_it_was(plain: str) -> None:
    sealed = ring(OLD).seal(plain)
    assert len(plain) < 8 or plain not in sealed
    assert ring(OLD).open(sealed) == plain


def test_the_same_text_is_sealed_differently_each_time() -> None:
    assert ring(OLD).seal(PLAIN) != ring(OLD).seal(PLAIN)


def test_during_a_rotation_the_first_key_seals_and_both_open() -> None:
    before = ring(OLD).seal(PLAIN)
    rotating = ring(NEW, OLD)
    after = rotating.seal(PLAIN)
    assert rotating.open(before) == rotating.open(after) == PLAIN
    assert not rotating.is_current(before)
    assert rotating.is_current(after)
    assert ring(NEW).open(after) == PLAIN


def test_after_a_rotation_the_old_key_is_unknown() -> None:
    sealed = ring(OLD).seal(PLAIN)
    key_id = sealed.split(".")[1]
    with pytest.raises(UnknownKey, match=key_id):
        ring(NEW).open(sealed)


def test_a_text_opens_only_for_what_it_is_bound_to() -> None:
    sealed = ring(OLD).seal(PLAIN, bound_to="vnf-1")
    assert ring(OLD).open(sealed, bound_to="vnf-1") == PLAIN
    for other in ("vnf-2", ""):
        with pytest.raises(UnknownKey):
            ring(OLD).open(sealed, bound_to=other)


@pytest.mark.parametrize("index", [0, 5, 12, -1])
def test_a_changed_byte_is_noticed(index: int) -> None:
    version, key_id, payload = ring(OLD).seal(PLAIN).split(".")
    raw = bytearray(urlsafe_b64decode(payload))
    raw[index] ^= 1
    with pytest.raises(UnknownKey, match="does not open"):
        ring(OLD).open(f"{version}.{key_id}.{urlsafe_b64encode(raw).decode()}")


@pytest.mark.parametrize("payload", ["", "AAAA", "A", "not base64 é"])
def test_a_text_that_was_cut_or_is_no_base64_does_not_open(payload: str) -> None:
    version, key_id, _ = ring(OLD).seal(PLAIN).split(".")
    with pytest.raises(UnknownKey, match="does not open"):
        ring(OLD).open(f"{version}.{key_id}.{payload}")


@pytest.mark.parametrize("text", ["", "plain", "v1", "v1.", "v1.00000000.AAAA", "v2.{id}.AAAA"])
def test_a_text_that_no_ring_sealed_is_refused(text: str) -> None:
    key_id = ring(OLD).seal("").split(".")[1]
    with pytest.raises(UnknownKey):
        ring(OLD).open(text.format(id=key_id))


@pytest.mark.parametrize(
    "text",
    ["", ",", "abc", "AAAA", OLD[:-4], f"{OLD},short"],
    ids=["empty", "comma", "no base64", "too short", "cut", "second too short"],
)
def test_a_ring_of_wrong_keys_is_refused_without_showing_them(text: str) -> None:
    with pytest.raises(ValueError, match="key ring") as refused:
        KeyRing.from_text(text)
    for part in text.split(","):
        assert not part or part not in str(refused.value)


def test_spaces_around_keys_are_ignored() -> None:
    assert KeyRing.from_text(f" {NEW} , {OLD}, ").open(ring(OLD).seal(PLAIN)) == PLAIN
