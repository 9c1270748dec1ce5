"""MXNet 1.5, by Gluon."""

RANK = 4
PACKAGES = ()
AUTOTUNE = "MXNET_CUDNN_AUTOTUNE_DEFAULT"  # 0: no search of cuDNN's; 1, the default: within the memory of a workspace


def variables(request):
    """Whether cuDNN searches its fastest algorithm. MXNet reads it at the first convolution."""
    untuned = request.case.get("autotune") == "off" or request.case.get("convolution_tuning") == "untuned"
    return {AUTOTUNE: "0" if untuned else "1"}
