"""Keeps a device at work for a while before the first trial of a session. Needs no case; nothing of it is kept."""

from experiments import device_limits

# Large enough that a GPU draws its full power.
MATRIX = {"cpu": 1024, "cuda": 4096}


def run(request, emitter):
    request.case.update(
        protocol="steady", operation="matmul", devices=1, precision="fp32", matrix_size=MATRIX[request.accelerator]
    )
    device_limits.run(request, emitter)
