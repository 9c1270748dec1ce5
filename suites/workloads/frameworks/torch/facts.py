"""The facts that PyTorch reports, and its switches."""

import functools
import re

import torch

from common import installed
from frameworks import interface

# torch 1.1 and 1.2 on a CPU: "_th_mm not supported on CPUType for Half"; later ones: "not implemented for 'Half'".
REFUSED = re.compile(r"[^\n]*not (supported on CPUType for |implemented for ')(Half|BFloat16)[^\n]*")


class Framework(interface.Framework):
    name = "torch"
    module = torch
    layout = "channels_first"

    def facts(self):
        cudnn = torch.backends.cudnn
        return {
            "versions": installed.versions("torch", "numpy", "scipy"),
            "cuda": torch.version.cuda,
            "cudnn": str(cudnn.version()) if torch.version.cuda else None,
            "flags": {
                "cudnn_benchmark": cudnn.benchmark,
                "deterministic": cudnn.deterministic,
                "tf32": getattr(cudnn, "allow_tf32", False),  # torch before 1.7 has no TF32
                "threads": torch.get_num_threads(),
            },
        }

    def cuda_usable(self):
        return torch.cuda.is_available()

    def allocators(self):
        most = getattr(torch.cuda, "max_memory_reserved", None) or torch.cuda.max_memory_cached  # PyTorch before 1.4
        gpus = range(torch.cuda.device_count())
        return [(most(gpu) / 2.0**20, torch.cuda.get_device_properties(gpu).total_memory / 2.0**20) for gpu in gpus]

    def tf32_switches(self):
        if not hasattr(torch.backends.cudnn, "allow_tf32"):
            return None
        backends = (torch.backends.cudnn, torch.backends.cuda.matmul)
        return [functools.partial(setattr, backend, "allow_tf32") for backend in backends]

    def precision_refusal(self, error):
        refusal = REFUSED.search(str(error))
        return refusal and refusal.group().strip()
