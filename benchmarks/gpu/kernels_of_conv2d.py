"""Runs inside the environment: the kernels of a steady step of conv2d, by PyTorch's profiler.

Its argument is JSON: images, device. Prints one JSON object: `kernels`, the longest first, (name, seconds of a step).
"""

import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 5
SHOWN = 6


def main() -> None:
    asked = json.loads(sys.argv[1])
    device = asked["device"]
    images = torch.rand(asked["images"], 1, 100, 100, device=device)
    weights = torch.rand(1, 1, 3, 3, device=device)
    torch.backends.cudnn.allow_tf32 = False

    def step() -> None:
        torch.nn.functional.conv2d(images, weights, padding=1)
        if device == "cuda":
            torch.cuda.synchronize()

    step()
    activities = [ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.CPU]
    with profile(activities=activities) as profiled:
        for _ in range(STEPS):
            step()
    spent = "self_device_time_total" if device == "cuda" else "self_cpu_time_total"
    kernels = [(row.key, getattr(row, spent) / 1e6 / STEPS) for row in profiled.key_averages()]
    longest = sorted((kernel for kernel in kernels if kernel[1] > 0), key=lambda kernel: -kernel[1])
    print(json.dumps({"kernels": longest[:SHOWN]}))


if __name__ == "__main__":
    main()
