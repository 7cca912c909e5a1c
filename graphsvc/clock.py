"""Times as the ledger writes them: UTC text of fixed width, so that text order is time order."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from graphsvc.errors import InvalidInput

_FIRST: Final = datetime(1, 1, 1, tzinfo=UTC)
Clock = Callable[[], datetime]
ISO: Final = "an ISO 8601 time such as 2026-11-30T09:26:36Z, or a date"


def system() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


def utc_text(moment: datetime) -> str:
    """Write a moment as `2026-11-30T09:26:36.611000Z`; a naive one counts as UTC."""
    aware = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return aware.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def parse(text: str) -> datetime:
    """Read an ISO 8601 time; raise ValueError for anything else. Naive input stays naive."""
    if not re.match(r"\d{4}-?\d{2}-?\d{2}", text):
        raise ValueError(text)
    moment = datetime.fromisoformat(text)
    utc_text(moment)  # year 1 and year 9999 overflow here, not at the first use
    return moment


def to_micros(text: str) -> int:
    """Return a time of the ledger as microseconds since the year 1."""
    return (datetime.fromisoformat(text) - _FIRST) // timedelta(microseconds=1)


def from_micros(count: int) -> str:
    """Write microseconds since the year 1 as a time of the ledger; what is beyond all times is the last one."""
    return utc_text(_FIRST + timedelta(microseconds=min(count, to_micros("9999-12-31T23:59:59.999999Z"))))


def from_epoch_ms(value: object) -> str | None:
    """Read a host's epoch milliseconds; None when it is no time."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return utc_text(datetime.fromtimestamp(value / 1000, UTC))
    except (OverflowError, OSError, ValueError):
        return None


def from_host(value: object) -> tuple[str | None, bool]:
    """Read a host's time text as (UTC text or None, whether it came without a zone)."""
    if not isinstance(value, str):
        return None, False
    try:
        moment = parse(value)
    except (ValueError, OverflowError):
        return None, False
    return utc_text(moment), moment.tzinfo is None


def bound(field: str, value: str, *, end: bool, zone: tzinfo = UTC) -> str:
    """Read `since` or `until`: inclusive; a date means its first or its last moment in the zone."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            moment = datetime.combine(date.fromisoformat(value), time.max if end else time.min, zone)
        else:
            moment = parse(value)
        return utc_text(moment)
    except (ValueError, OverflowError):
        raise InvalidInput(field, f"{value!r} is no time", ISO) from None
