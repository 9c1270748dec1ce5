"""The self-check's operations in Chainer."""

import chainer
import chainer.functions as functions

from frameworks import parts
from frameworks.chainer import places


class SelfCheck(parts.SelfCheck):
    def compute(self, place, left, right, images, filters):
        places.check([place])
        images, filters = chainer.Variable(images), chainer.Variable(filters)
        result = functions.convolution_2d(images, filters)
        (functions.sum(result * result) / 2).backward()
        return [functions.matmul(left, right).array, result.array, images.grad, filters.grad]
