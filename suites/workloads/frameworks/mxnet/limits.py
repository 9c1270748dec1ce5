"""device_limits in MXNet."""

import mxnet
import numpy as np

from common.events import Unsupported
from frameworks import parts
from frameworks.mxnet import devices

KINDS = {"fp32": "float32", "fp16": "float16"}
NO_HALF = "dot only supports float32/float64 for CPU"


class Limits(parts.Limits):
    def matmul(self, problem, measure):
        kind = KINDS.get(problem.precision)
        if kind is None:
            raise Unsupported("precision {!r}: MXNet 1.5 has none; 'fp32' would run".format(problem.precision))
        device = devices.device(problem.places, 0)
        left, right = [devices.on(matrix.astype(kind), device) for matrix in problem.matrices]
        product, rows = mxnet.nd.zeros(left.shape, ctx=device, dtype=kind), problem.rows
        try:
            measure(lambda: mxnet.nd.dot(left, right, out=product), mxnet.nd.waitall)
            # An operation that failed is noticed where something waits for its result.
            return [matrix.asnumpy().astype(np.float32) for matrix in (left[rows], right, product[rows])]
        except mxnet.base.MXNetError as error:
            if NO_HALF not in str(error):
                raise
            raise Unsupported(
                "precision {!r}: MXNet {} says: {}; 'fp32' would run".format(
                    problem.precision, mxnet.__version__, NO_HALF
                )
            ) from error

    def copy(self, problem, measure, source, target):
        """Both buffers are made before, so that no step allocates; host memory is pinned where there is a GPU."""
        source, target = [_buffer(problem, index) for index in (source, target)]
        measure(lambda: source.copyto(target), mxnet.nd.waitall)

    def all_reduce(self, problem, measure):
        """By a key-value store on the devices: each pushes its numbers, and pulls their sum."""
        buffers = [_filled(problem, device, 1) for device in devices.all_of(problem.places)]
        store = mxnet.kv.create("device")
        store.init(0, buffers[0])

        def step():
            store.push(0, buffers)
            store.pull(0, out=buffers)

        step()
        checked = buffers[-1][0].asscalar()
        for buffer in buffers:
            buffer[:] = 0  # so that repeated sums do not overflow
        measure(step, mxnet.nd.waitall)
        return checked

    def kernel_launch(self, problem, measure):
        number = mxnet.nd.zeros((1,), ctx=devices.device(problem.places, 0))

        def step():
            result = number
            for _ in range(problem.launches):
                result += 1

        measure(step, mxnet.nd.waitall)


def _buffer(problem, index):
    """A buffer in the memory of the place with this index; of the host for None."""
    memory = devices.host_memory(problem.places) if index is None else devices.device(problem.places, index)
    return _filled(problem, memory, 1)


def _filled(problem, memory, value):
    """Filled, as the system may not have allocated memory that was never written."""
    return mxnet.nd.full((problem.values,), value, ctx=memory)
