"""Which sessions are of one day."""

from tsuishi.results.days import days_of_sessions


def test_sessions_that_begin_within_twelve_hours_of_the_first_are_of_its_day() -> None:
    begins = {
        "late": "2026-11-21T21:00:00Z",
        "first": "2026-11-21T08:00:00Z",
        "second": "2026-11-21T19:59:59+00:00",
        "next": "2026-11-22T08:59:59Z",
        "lost": "",
    }
    days = days_of_sessions(begins)
    assert days == {"first": "first", "second": "first", "late": "late", "next": "late", "lost": "lost"}


def test_a_time_without_a_zone_is_utc() -> None:
    assert len({*days_of_sessions({"a": "2026-11-21T08:00:00", "b": "2026-11-21T10:00:00Z"}).values()}) == 1
