"""Runs inside a TensorFlow environment: what its CUDA paths do, as far as a CPU can show it.

Argument: the folder of the workloads. Prints a JSON object. Keeps to Python 3.6, as the workloads do.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy as np
import tensorflow as tf
from recorder import Recorder

from common import cuda_devices, data, jobs, networks
from common.events import Unsupported
from common.request import Request
from experiments import conv2d as experiment
from experiments import device_limits, parity
from frameworks.tensorflow import conv2d, limits
from frameworks.tensorflow.strategies import mirrored, none, towers

BATCH = 8
SETTINGS = {"learning_rate": 0.01, "momentum": 0.9, "seed": 0, "later_runs": 1}
NETWORK = networks.small(networks.NETWORKS["cnn10"])
MIB = 2**20


def job(strategy="none", execution="native", places=(None,), network=NETWORK, layout="channels_last"):
    (images, labels), _ = data.synthetic(BATCH, 0, 0, network.shape)
    train = data.normalise(images), labels
    return jobs.Job(
        network, "training", layout, strategy, list(places), BATCH, "fp32", execution, train, None, SETTINGS
    )


def programs_of_xla():
    """For predictions of Keras on a machine that has a GPU: whether it made any of them by XLA."""
    listed, function, made = tf.config.list_physical_devices, tf.function, []
    gpu = tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")

    def recorded(*given, **options):
        if "reduce_retracing" in options:  # of Keras's trainer, not of a layer
            made.append(bool(options.get("jit_compile")))
        return function(*given, **options)

    tf.config.list_physical_devices = lambda kind=None: listed(kind) + ([gpu] if kind != "CPU" else [])
    tf.function = recorded
    images, kernel = np.ones((4, 8, 8, 1), np.float32), np.ones((3, 3, 1, 1), np.float32)
    problem = experiment.Problem(images, kernel, [None], None, None, SETTINGS, None)
    found = {"conv2d": xla_in(made, lambda: conv2d.Conv2d().keras(problem, Recorder()))}
    trainer = none.Strategy.steady(job())
    found["logits"] = xla_in(made, lambda: trainer.logits(trainer.job.train[0]))
    tf.config.list_physical_devices, tf.function = listed, function
    return found


def xla_in(made, predict):
    """Whether each program that `predict` has made is one of XLA."""
    del made[:]
    predict()
    return list(made)


def peaks():
    """The peak of two GPUs with 3 and 5 MiB, by whom asks for it."""
    tf.config.experimental.get_memory_info = lambda device: {"peak": {"GPU:0": 3, "GPU:1": 5}[device] * MIB}
    trainers = {"keras": none.Strategy.steady(job()), "towers": towers.Strategy.steady(job("towers"))}
    for trainer in trainers.values():
        trainer.job = trainer.job._replace(places=[0, 1])
    found = {name: trainer.peak_device_memory_mib() for name, trainer in trainers.items()}
    return dict(found, conv2d=conv2d.Conv2d().peak_device_memory_mib([0, 1]))


def transposes_after_steps(strategy, layout):
    """In a step of a network that flattens its images, which channels_first has to transpose for it."""
    network = networks.Network("flat", (8, 8, 3), [networks.Flatten(), networks.Dense(10)], 1930)
    trainer = strategy.steady(job(network=network, layout=layout))
    trainer.step()
    trainer.step()
    return trainer.transposes()


def refusal(check, *arguments):
    """Why a check refuses; "" where it does not."""
    try:
        check(*arguments)
    except Unsupported as error:
        return str(error)
    return ""


def without_kernels():
    """Why a product in bfloat16 is refused by a device without variables of that type.

    A GPU is such a device, in TensorFlow 1; here, XLA's own device of the CPU.
    """
    limits.tower_device = lambda index, place: "/device:XLA_CPU:0"
    return refusal(device_limits.try_product, limits, "bf16", None)


def two_copies():
    """The metrics of parity, for two copies of multi_gpu_model: on two devices of a CPU that are taken for GPUs."""
    from tensorflow.python.keras.utils import multi_gpu_utils

    class OnCpus:
        """TensorFlow's module of operations, as multi_gpu_model uses it."""

        def __getattr__(self, name):
            return getattr(ops, name)

        def device(self, name):
            return ops.device(name.replace("gpu", "cpu"))

    ops, multi_gpu_utils.ops = multi_gpu_utils.ops, OnCpus()
    multi_gpu_utils._get_available_devices = lambda: ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    cuda_devices._devices = lambda: [["GPU", [7, 0], 16384]] * 2
    tf.keras.backend.set_session(tf.Session(config=tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)))
    case = {
        "protocol": "steady",
        "mode": "training",
        "model": "mlp",
        "layout": "native",
        "strategy": "multi_gpu_model",
        "devices": 2,
        "nodes": 1,
        "batch_size": BATCH,
        "precision": "fp32",
        "execution": "native",
    }
    emitter = Recorder()
    emitter.environment = lambda **facts: None
    asked = {"case": case, "framework": "tensorflow", "accelerator": "cuda", "settings": SETTINGS}
    parity.run(Request(asked), emitter)
    return {name: value for name, (value, _) in emitter.metrics.items()}


def main():
    if tf.__version__.startswith("1."):
        found = {"bf16": without_kernels(), "copies": two_copies()}
    else:
        compiled, native = (job("mirrored", execution, (0, 1)) for execution in ("compiled", "native"))
        found = {
            "xla": programs_of_xla(),
            "transposes": {
                layout: transposes_after_steps(none.Strategy, layout) for layout in ("channels_first", "channels_last")
            },
            "peaks": peaks(),
            "compiled": refusal(mirrored.Strategy().check, compiled, "steady"),
            "native": refusal(mirrored.Strategy().check, native, "steady"),
        }
    print("found: " + json.dumps(found))


main()
