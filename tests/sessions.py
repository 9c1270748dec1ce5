"""Sessions on machines that are not here."""

from typing import Any

from tsuishi.plan.session import Session


def seeing(session: Session, **instead: Any) -> Session:
    """The session, which takes these (`nvml`, `history`) for what it would look for on this machine."""
    vars(session).update(instead)
    return session
