import pytest
from kubevnfm_kit.errors import Conflict, OutsideUnavailable, PlacedError, VnfmError


class Unreachable(PlacedError, OutsideUnavailable, code="unreachable", template="{place} does not answer: {reason}"):
    pass


class Again(Unreachable):
    pass


def test_a_class_keeps_what_it_does_not_set_from_its_bases() -> None:
    assert (Again.code, Again.title, Again.status, Again.retryable) == (
        "unreachable", OutsideUnavailable.title, OutsideUnavailable.status, True,
    )  # fmt: skip
    assert (VnfmError.code, Conflict.retryable) == ("vnfm-error", False)


def test_the_text_of_an_error_at_a_place_is_made_from_its_template() -> None:
    error = Again("https://vim:5000", "ConnectionRefusedError")
    assert str(error) == "https://vim:5000 does not answer: ConnectionRefusedError"
    assert (error.place, error.reason) == ("https://vim:5000", "ConnectionRefusedError")


def test_braces_in_a_reason_are_text() -> None:
    assert str(PlacedError("nova", "{place} {0} {}")) == "nova: {place} {0} {}"


def test_a_class_cannot_set_what_errors_do_not_have() -> None:
    with pytest.raises(TypeError, match="colour"):
        type("Odd", (VnfmError,), {}, colour="red")
