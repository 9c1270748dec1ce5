"""TensorFlow, 0.12 to 2.x: Keras, and graph mode (graph_api.py)."""

from frameworks.tensorflow import cuda_wheels

RANK = 2
PACKAGES = ()


def variables(request):
    """What TensorFlow reads at its import.

    Whether cuDNN searches for the fastest algorithm, as it does by default, and where XLA finds the tools of CUDA 11.
    """
    search = {"TF_CUDNN_USE_AUTOTUNE": "0"} if request.case.get("autotune") == "off" else {}
    tools = cuda_wheels.compiler()
    return {**search, **({"XLA_FLAGS": "--xla_gpu_cuda_data_dir=" + tools} if tools else {})}
