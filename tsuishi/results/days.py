"""The days of sessions: calls of one afternoon have the state of the machine in common, and show no other day."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

# Sessions that begin within so long a time are of one day.
_DAY = timedelta(hours=12)


def days_of_sessions(begins: Mapping[str, str]) -> dict[str, str]:
    """The day of each session: the name of the first session that began less than 12 hours before.

    begins: when each session began, by its name: ISO 8601. A time that cannot be read is a day of its own.
    """
    days: dict[str, str] = {}
    first, begin = "", datetime.min.replace(tzinfo=UTC)
    for session, began in sorted(_readable(begins.items()), key=lambda each: each[1]):
        if not first or began - begin >= _DAY:
            first, begin = session, began
        days[session] = first
    return days | {session: session for session in begins if session not in days}


def _readable(begins: Iterable[tuple[str, str]]) -> Iterable[tuple[str, datetime]]:
    for session, text in begins:
        try:
            began = datetime.fromisoformat(text)
        except ValueError:
            continue
        yield session, began if began.tzinfo else began.replace(tzinfo=UTC)
