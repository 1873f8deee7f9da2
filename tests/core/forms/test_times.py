"""Times: seconds inside, RFC 3339 outside."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import InvalidMessage
from flyball.core.forms.times import ZERO_TIME, seconds, stamp
from tests.core.forms.documents import wild_times
from tests.strategies import moments


@given(moments)
def test_a_float_comes_back_to_the_last_bit(moment: float) -> None:
    assert seconds(stamp(moment), "t") == moment


@given(st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_microseconds_come_back_as_they_were_written(moment: datetime) -> None:
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".") + "Z"
    assert stamp(seconds(text, "t")) == text


@given(wild_times)
def test_what_others_write_is_the_time_that_python_reads(text: str) -> None:
    found = seconds(text, "t")
    # Python reads six digits of a fraction, which is what is compared.
    assert found == pytest.approx(datetime.fromisoformat(text).timestamp(), abs=2e-6, rel=1e-15)
    assert seconds(stamp(found), "t") == pytest.approx(found, abs=1e-9, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("1970-01-01T00:00:00.5Z", 0.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1969-12-31T23:59:59.25Z", -0.75),
        ("1969-12-31T23:00:00-01:00", 0.0),
        ("2025-01-15T10:30:00.123456789Z", 1736937000.1234567),
        (ZERO_TIME, None),
        ("0001-01-01T00:00:00.000Z", None),
    ],
)
def test_examples(text: str, moment: float | None) -> None:
    assert seconds(text, "t") == moment


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, ZERO_TIME),
        (0.0, "1970-01-01T00:00:00Z"),
        (-0.75, "1969-12-31T23:59:59.25Z"),
        (1736937000.1, "2025-01-15T10:30:00.1Z"),
        (1736937000, "2025-01-15T10:30:00Z"),
    ],
)
def test_what_is_written(moment: float | None, text: str) -> None:
    assert stamp(moment) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2025-01-15",
        "2025-01-15T10:30:00",
        "2025-01-15 10:30:00Z",
        "2025-01-15t10:30:00z",
        "2025-13-15T10:30:00Z",
        "2025-02-30T10:30:00Z",
        "2025-01-15T24:30:00Z",
        "2025-01-15T10:30:60Z",
        "2025-01-15T10:30:00+24:00",
        "2025-01-15T10:30:00+00:60",
        "2025-01-15T10:30:00.Z",
        "0000-01-15T10:30:00Z",
        "\uff12025-01-15T10:30:00Z",
        "2025-01-15T10:30:00Z\n",
    ],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        seconds(text, "message.timestamp")
    assert caught.value.details["where"] == "message.timestamp"


@pytest.mark.parametrize("moment", [float("nan"), float("inf"), -float("inf"), 1e12, -1e12, 1e300])
def test_what_no_calendar_has_is_refused(moment: float) -> None:
    with pytest.raises(InvalidMessage, match="1 to 9999"):
        stamp(moment)
