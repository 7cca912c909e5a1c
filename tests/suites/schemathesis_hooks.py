"""What schemathesis must know of our schema: values for its scalars. Loaded through SCHEMATHESIS_HOOKS."""

from __future__ import annotations

import schemathesis
from hypothesis import strategies as st
from schemathesis.graphql import nodes

TEXTS = st.text(max_size=40)
JSON = st.recursive(
    st.none().map(lambda _: nodes.Null)
    | st.booleans().map(nodes.Boolean)
    | st.integers(-(2**31), 2**31 - 1).map(nodes.Int)
    | TEXTS.map(nodes.String),
    lambda inner: st.lists(inner, max_size=3).map(nodes.List),
    max_leaves=6,
)
TIMES = st.datetimes().map(lambda moment: moment.isoformat()) | st.dates().map(lambda day: day.isoformat())

SCALARS = {
    "Long": st.integers(-(2**63), 2**63 - 1).map(nodes.Int),
    "DateTime": TIMES.map(nodes.String),
    "Cursor": st.from_regex(r"[0-9]{1,18}\.[0-9]{1,18}", fullmatch=True).map(nodes.String),
    "EdgeCursor": st.from_regex(r"[01]\.[01]\.[0-9]{1,9}\.[0-4]\.[0-7]\.[0-9]{1,9}", fullmatch=True).map(nodes.String),
    "PageSize": st.integers(1, 100).map(nodes.Int),
    "Length": st.integers(1, 100_000).map(nodes.Int),
    "TimeZone": st.sampled_from(["UTC", "Asia/Shanghai", "Europe/Berlin"]).map(nodes.String),
    "JSON": JSON,
}

for name, strategy in SCALARS.items():
    schemathesis.graphql.scalar(name, strategy)
