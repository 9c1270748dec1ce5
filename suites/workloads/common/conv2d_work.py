"""The work of convolving every image of a problem once, as metrics `flops` and `bytes`."""

FLOAT32 = 4  # bytes


def report(problem, emitter, share=1.0):
    """Of one step of `compute`, and of one later run. share: of the convolutions, those that it does.

    What was folded into a constant, or merged with another tower, before it ran is no work of a later run.
    """
    emitter.metric("flops", share * flops(problem), "1")
    emitter.metric("bytes", share * least_bytes(problem), "B")


def flops(problem):
    """2 x multiply-adds: N x height x width x C outputs of size x size x C multiply-adds each.

    As He and Sun count them (CVPR 2015, "Convolutional neural networks at constrained time cost", eq. 1): at every
    pixel of the 'same' output, products with the zeros around the image included. The sum over towers is left out: at
    most one addition for every size x size x C multiply-adds.
    """
    return 2 * problem.images.size * problem.kernel[..., 0].size


def least_bytes(problem):
    """Input read once, output (as large) written once, filter read once: float32, the traffic no cache can save.

    The denominator of operational intensity (Williams, Waterman and Patterson 2009, "Roofline"). Sum over towers: none.
    """
    return FLOAT32 * (2 * problem.images.size + problem.kernel.size)


def report_one_image(problem, emitter):
    """As report(), for one channel of one image convolved N x C x C times: the input counts once, and every result."""
    plane = problem.images[0, :, :, 0].size
    convolutions = len(problem.images) * problem.kernel.shape[2] * problem.kernel.shape[3]
    emitter.metric("flops", flops(problem), "1")
    emitter.metric("bytes", FLOAT32 * ((1 + convolutions) * plane + problem.kernel[:, :, 0, 0].size), "B")
