"""A transformer decoder in MXNet: none."""

from common.events import Unsupported
from frameworks import parts


class Decoder(parts.Decoder):
    def check(self, job):
        raise Unsupported(
            "model {!r}: no decoder is written here for MXNet; TensorFlow has one".format(job.network.name)
        )
