"""Input pipelines of towers in Chainer: none."""

from common.events import Unsupported
from frameworks import parts


class Pipelines(parts.Pipelines):
    def check(self, case):
        raise Unsupported(
            "pipeline {!r}: for Chainer none is written here, as no source fed its towers; TensorFlow has them "
            "all".format(case["pipeline"])
        )
