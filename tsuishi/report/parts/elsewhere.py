"""Words of a report that are written down elsewhere, in rooms that know no language: here catalogues find them."""

from tsuishi.base.language import mark

# Of analysis.frames.STATUSES, as status_text says them.
STATUSES = (
    mark("ok"),
    mark("out of memory"),
    mark("unsupported"),
    mark("skipped"),
    mark("timeout"),
    mark("failed"),
    mark("interrupted"),
    mark("missing"),
)

# Of analysis.frames: the one reason that no run recorded.
WHY_MISSING = mark("planned, but the run was stopped before it: go on with `invoke run-suite --resume latest`")
