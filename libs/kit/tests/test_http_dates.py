"""Dates in headers of HTTP."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubevnfm_kit.http_dates import read_http_date


@pytest.mark.parametrize(
    "text",
    [
        "Thu, 26 Nov 2026 06:00:00 GMT",
        "Thu, 26 Nov 2026 06:00:00 -0000",
        "Thu, 26 Nov 2026 07:00:00 +0100",
        "Thursday, 26-Nov-26 06:00:00 GMT",
        "Thu Nov 26 06:00:00 2026",
    ],
)
def test_each_form_of_a_date_is_read(text: str) -> None:
    assert read_http_date(text) == datetime(2026, 11, 26, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "Mon, 01 Jan 99999999999 00:00:00 GMT",
        "Mon, 01 Jan 2024 00:00:00 +9999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 32 Jan 2024 99:99:99 GMT",
    ],
)
def test_what_no_calendar_has_is_no_date(text: str) -> None:
    assert read_http_date(text) is None


@given(st.text("Mon, 0123456789Ja:GMT+-", max_size=60))
def test_no_text_raises(text: str) -> None:
    read_http_date(text)
