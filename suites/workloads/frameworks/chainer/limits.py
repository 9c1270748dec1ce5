"""device_limits in Chainer on NumPy."""

import chainer
import chainer.functions as functions
import numpy as np

from common.events import Unsupported
from frameworks import parts
from frameworks.chainer import places

KINDS = {"fp32": "float32", "fp16": "float16"}


class Limits(parts.Limits):
    def check(self, case):
        if case["operation"] == "all_reduce":
            raise Unsupported(
                "operation 'all_reduce': Chainer leaves it to ChainerMN, for GPUs and MPI; on a CPU TensorFlow has it"
            )

    def matmul(self, problem, measure):
        places.check(problem.places)
        kind = KINDS.get(problem.precision)
        if kind is None:
            raise Unsupported(
                "precision {!r}: NumPy, by which Chainer computes, has none; 'fp32' would run".format(problem.precision)
            )
        left, right = [matrix.astype(kind) for matrix in problem.matrices]
        product = []

        def step():
            product[:] = [functions.matmul(left, right).array]

        with chainer.no_backprop_mode():
            measure(step, _nothing)
        return [matrix.astype(np.float32) for matrix in (left[problem.rows], right, product[0][problem.rows])]

    def copy(self, problem, measure, source, target):
        """Every array is NumPy's, in the memory of the CPU; both are made before, so that no step allocates."""
        places.check(problem.places)
        source, target = [np.ones(problem.values, np.float32) for _ in range(2)]
        measure(lambda: np.copyto(target, source), _nothing)

    def kernel_launch(self, problem, measure):
        places.check(problem.places)

        def step():
            number = chainer.Variable(np.zeros(1, np.float32))
            for _ in range(problem.launches):
                number = number + 1

        with chainer.no_backprop_mode():
            measure(step, _nothing)


def _nothing():
    """NumPy returns when it has computed."""
