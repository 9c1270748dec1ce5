"""What is to be trained: a case, checked, with its data and the module that does it."""

import collections
import contextlib
import importlib
import re

import frameworks
from common import data, networks
from common.events import Unsupported

AXES = (
    "protocol",
    "mode",
    "model",
    "layout",
    "strategy",
    "devices",
    "nodes",
    "batch_size",
    "precision",
    "execution",
)
STRATEGIES = ("none", "data_parallel", "distributed_data_parallel", "multi_gpu_model", "mirrored", "towers")
NATIVE_LAYOUT = {"torch": "channels_first", "tensorflow": "channels_last"}
# Which module knows a strategy; what is missing here, no program of that framework does.
MODULES = {
    ("torch", "none"): "frameworks.torch.training",
    ("torch", "data_parallel"): "frameworks.torch.training",
    ("torch", "distributed_data_parallel"): "frameworks.torch.strategies.distributed_data_parallel",
    ("tensorflow", "none"): "frameworks.tensorflow.keras",
    ("tensorflow", "multi_gpu_model"): "frameworks.tensorflow.keras",
    ("tensorflow", "mirrored"): "frameworks.tensorflow.keras",
    ("tensorflow", "towers"): "frameworks.tensorflow.towers",
}

# TensorFlow's CPU kernels; which of them can do channels_first depends on its version, and on whether oneDNN is on,
# which depends on the CPU. So it is tried.
LAYOUT_REFUSED = re.compile(r"[^\n]* only supports NHWC[^\n]*")

# network: networks.Network; mode: training or inference; layout: channels_first or channels_last; places: for each
# device a GPU index, or None for the CPU; batch_size: over all devices; train, test: (images, labels), images
# (N, height, width, channels) float32 whatever the layout, labels (N,) int64, or None before there are any; settings:
# of the request.
Job = collections.namedtuple(
    "Job", "network mode layout strategy places batch_size precision execution train test settings"
)

# name, module: of the framework; implementation: the module that does the strategy; job: a Job without its data.
Way = collections.namedtuple("Way", "name module implementation job")


def check(case, axes=AXES):
    """ValueError for a case that says what the workloads do not know, Unsupported for what none of them can do."""
    case.require_only(axes)
    case.one_of("protocol", ("literal", "steady"))
    case.one_of("mode", ("training", "inference"))
    case.one_of("model", sorted(networks.NETWORKS))
    case.one_of("layout", ("native", "channels_first", "channels_last"))
    case.one_of("strategy", STRATEGIES)
    case.one_of("precision", ("fp32", "tf32", "amp_fp16", "amp_bf16"))
    case.one_of("execution", ("native", "compiled", "cuda_graph"))
    for axis in ("devices", "nodes", "batch_size"):
        case.positive(axis)
    if case["nodes"] > 1:
        raise Unsupported("{} nodes: this runs on 1".format(case["nodes"]))
    if (case["devices"] > 1) == (case["strategy"] == "none"):
        raise Unsupported(
            "strategy {!r} with {} device(s): 'none' is for one device, the others for several".format(
                case["strategy"], case["devices"]
            )
        )
    if case["batch_size"] % case["devices"]:
        raise ValueError(
            "a batch of {} cannot be split evenly over {} devices".format(case["batch_size"], case["devices"])
        )


def module_for(name, case):
    """The module that does a case's strategy in a framework. Raises Unsupported where there is none."""
    strategy = case["strategy"]
    if (name, strategy) not in MODULES:
        able = ", ".join(sorted(known for framework, known in MODULES if framework == name and known != "none"))
        raise Unsupported("strategy {!r} is none of {}'s; these are: {}".format(strategy, name, able))
    module = MODULES[name, strategy]
    if case["protocol"] == "literal" and module in (
        "frameworks.torch.strategies.distributed_data_parallel",
        "frameworks.tensorflow.towers",
    ):
        raise Unsupported(
            "protocol 'literal' with strategy {!r}: no source trained so; 'steady' would run".format(strategy)
        )
    return importlib.import_module(module)


def check_devices(request):
    """Raises Unsupported for what the devices here cannot do in any framework."""
    places = frameworks.placement(request, request.case["devices"])
    frameworks.check_tf32(request.case["precision"] == "tf32", places)


def way(request):
    """The Way in which a checked case is trained here. Raises Unsupported where there is none; builds nothing."""
    case = request.case
    name, module = frameworks.load(request)
    frameworks.require_tf32(name, module, case["precision"] == "tf32")
    found = Way(name, module, module_for(name, case), _without_data(request, name))
    found.implementation.check(found.job, case["protocol"])
    return found


def tries(found):
    """What has to be tried to know whether a Way can be gone: (function, arguments) of each, as possible.py wants it.

    The functions raise Unsupported as the training itself would.
    """
    return found.implementation.tries(found.job)


def _without_data(request, name):
    case = request.case
    return Job(
        networks.NETWORKS[case["model"]],
        case["mode"],
        NATIVE_LAYOUT[name] if case["layout"] == "native" else case["layout"],
        case["strategy"],
        frameworks.placement(request, case["devices"]),
        case["batch_size"],
        case["precision"],
        case["execution"],
        None,
        None,
        request.settings,
    )


def with_data(job, request):
    """(the Job with its data, whether these are made up)."""
    settings, steady = job.settings, request.case["protocol"] == "steady"
    train_images = job.batch_size if steady else settings.positive("train_images")
    test_images = 0 if steady else settings.positive("test_images")
    shape = job.network.shape
    train, test, synthetic = data.data_set(request.data, train_images, test_images, settings["seed"], shape)
    return job._replace(train=(data.normalise(train[0]), train[1]), test=(data.normalise(test[0]), test[1])), synthetic


def shards(job):
    """(images, labels) of each device's share of the batch, in the order of `places`."""
    size = job.batch_size // len(job.places)
    images, labels = job.train
    return [(images[i * size : (i + 1) * size], labels[i * size : (i + 1) * size]) for i in range(len(job.places))]


@contextlib.contextmanager
def layout_may_be_refused(layout, accelerator, module):
    """Raises Unsupported for an error that says this device has no kernel for the layout."""
    try:
        yield
    except Exception as error:
        refusal = LAYOUT_REFUSED.search(str(error))
        if not refusal:
            raise
        raise Unsupported(
            "layout {!r} on {}: {} {} says: {}; 'channels_last' would run".format(
                layout, accelerator, module.__name__, module.__version__, refusal.group()
            )
        ) from error
