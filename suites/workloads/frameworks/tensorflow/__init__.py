"""TensorFlow, 0.12 to 2.x: Keras, and graph mode (graph_api.py)."""

RANK = 2
PACKAGES = ()


def variables(request):
    """What TensorFlow reads at its import: whether cuDNN searches for the fastest algorithm, as it does by default."""
    return {"TF_CUDNN_USE_AUTOTUNE": "0"} if request.case.get("autotune") == "off" else {}
