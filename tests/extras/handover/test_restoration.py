"""Which image of an archive is that of its runs; what engines make of it is in tests/engine/test_archived_images.py."""

from typing import Any

import pytest

from tests.extras.handover.test_exchange import RECORD
from tsuishi.extras.handover.incoming import IncomingRecord
from tsuishi.extras.handover.restoration import is_measured
from tsuishi.results.records import EnvironmentRecord

OTHER = f"sha256:{'0' * 64}"


def record(**changes: Any) -> EnvironmentRecord:
    """A record of a run in the image, but for what changes; `layers` and `labels` are of its image."""
    image = {key: changes.pop(key, RECORD["image"][key]) for key in ("layers", "labels")}
    return EnvironmentRecord.model_validate({**RECORD, "image": image, **changes})


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (record(), True),
        # As Docker names an image that is in containerd's store.
        (record(realised_id=OTHER), True),
        (record(layers=[OTHER]), True),
        (record(realised_id=OTHER, layers=[OTHER]), False),
        (record(realised_id=OTHER, labels={}), False),
        (record(realised_id=OTHER, image=None), False),
        (record(spec_id="f" * 16), False),
    ],
)
def test_an_image_is_that_of_a_run_by_its_id_or_by_its_layers_and_labels(
    recorded: EnvironmentRecord, expected: bool
) -> None:
    image = IncomingRecord.model_validate(RECORD)
    assert is_measured(image, [recorded]) is expected
    assert is_measured(image, [record(realised_id=OTHER, layers=[]), recorded]) is expected
    assert not is_measured(image, [])
