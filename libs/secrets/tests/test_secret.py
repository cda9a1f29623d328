"""A Secret shows its value nowhere but in `reveal`."""

from __future__ import annotations

import json
import logging
import pickle

import pytest
from kubevnfm_secrets import MASK, KeyRing, Secret, UnknownKey, sealing
from pydantic import BaseModel, ConfigDict, ValidationError

RING = KeyRing.from_text(KeyRing.new_key())
VALUE = "hunter2-and-more"


class Account(BaseModel):
    model_config = ConfigDict(hide_input_in_errors=True)

    name: str
    password: Secret


def test_printing_formatting_and_logging_show_a_mask(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret(VALUE)
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("login with %s and %r", secret, secret)
    for shown in (str(secret), repr(secret), f"{secret}", f"{secret:>40}", f"{[secret]}", caplog.text):
        assert MASK in shown
        assert VALUE not in shown


def test_a_secret_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(Secret(VALUE))


def test_reveal_gives_the_value_of_a_plain_and_of_a_sealed_one() -> None:
    sealed = Secret.from_sealed(Secret(VALUE).seal(RING))
    assert Secret(VALUE).reveal(RING) == sealed.reveal(RING) == VALUE


def test_a_sealed_secret_is_not_sealed_a_second_time() -> None:
    text = Secret(VALUE).seal(RING)
    assert Secret.from_sealed(text).seal(RING) == text


def test_a_sealed_secret_needs_its_key() -> None:
    with pytest.raises(UnknownKey):
        Secret.from_sealed(Secret(VALUE).seal(RING)).reveal(KeyRing.from_text(KeyRing.new_key()))


def test_secrets_are_equal_by_value_or_by_sealed_text() -> None:
    text = Secret(VALUE).seal(RING)
    assert Secret(VALUE) == Secret(VALUE)
    assert hash(Secret(VALUE)) == hash(Secret(VALUE))
    assert Secret(VALUE) != Secret("other")
    assert Secret.from_sealed(text) == Secret.from_sealed(text)
    assert Secret.from_sealed(text) != Secret(VALUE)
    assert Secret(VALUE) != VALUE


def test_a_model_masks_its_secret_in_plain_json_and_seals_it_for_documents() -> None:
    account = Account(name="ubuntu", password=Secret(VALUE))
    assert json.loads(account.model_dump_json()) == {"name": "ubuntu", "password": MASK}
    document = account.model_dump(mode="json", context=sealing(RING))
    assert VALUE not in json.dumps(document)
    read = Account.model_validate(document)
    assert read.password.reveal(RING) == VALUE
    assert read.model_dump(mode="json", context=sealing(RING)) == document


def test_a_model_takes_a_plain_text() -> None:
    assert Account.model_validate({"name": "a", "password": VALUE}).password == Secret(VALUE)


@pytest.mark.parametrize(
    "given", [7, None, [VALUE], {"$sealed": 7}, {"$sealed": "v1.a.b", "more": VALUE}, {"x": VALUE}]
)
def test_anything_else_is_refused_without_showing_it(given: object) -> None:
    with pytest.raises(ValidationError) as refused:
        Account.model_validate({"name": "a", "password": given})
    assert VALUE not in str(refused.value)


def test_the_json_schema_describes_the_sealed_form() -> None:
    schema = Account.model_json_schema()["properties"]["password"]
    assert schema["required"] == ["$sealed"]
