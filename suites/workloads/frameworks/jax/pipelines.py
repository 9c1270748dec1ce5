"""Input pipelines in JAX: none."""

from common.events import Unsupported
from frameworks import parts


class Pipelines(parts.Pipelines):
    def check(self, case):
        raise Unsupported(
            "pipeline {!r}: JAX has none of its own, and none is written here; TensorFlow has them all".format(
                case["pipeline"]
            )
        )
