"""Networks of libraries beside PyTorch, by name: "torchvision:vgg16", "timm:resnet50". Their weights are random.

PyTorch's initial weights are those of each library; parameters and operations are counted, as no file here says them.
"""

import sys
import types

import torch

from common.events import Unsupported
from common.networks import ZOOS, Network, require_in_library

_USUAL_SIZE = 224
# Where torchvision was built for another PyTorch (its index has CUDA only), its operators of object detection are
# missing, and this module, which describes them to the compiler, ends the import.
_ABOUT_OPERATORS = "torchvision._meta_registrations"


def network(name, image_size):
    """The Network, without layers. image_size: pixels, or None for the network's own. Raises Unsupported."""
    library, model = name.split(":", 1)
    names = names_of(library)
    require_in_library(name, "{} {}".format(library, sys.modules[library].__version__), names)
    size = image_size or _own_size(library, model)
    return Network(name, (size, size, 3), None, None)


def build(network, seed):
    """An nn.Module of the network, from images (N, 3, height, width) to logits."""
    library, model = network.name.split(":", 1)
    module = _imported(library)  # a process for each device has not imported it yet
    torch.manual_seed(seed)
    if library == "torchvision":
        return getattr(module.models, model)()
    create = module.create_model
    if network.shape[0] != _own_size(library, model):
        try:
            return create(model, pretrained=False, img_size=network.shape[0])  # transformers have a size
        except TypeError:
            pass
    return create(model, pretrained=False)


def version(network):
    """The library with its version, and whether torchvision's operators are left out, being for another PyTorch."""
    library = network.name.split(":", 1)[0]
    stub = sys.modules.get(_ABOUT_OPERATORS)
    without = "" if getattr(stub, "__file__", None) else ", torchvision without its own operators"
    return "{} {}{}".format(library, sys.modules[library].__version__, without if stub else "")


def multiply_adds(module, shape):
    """Multiply-adds of an image's forward pass, by PyTorch's own counter; None before 2.1."""
    try:
        from torch.utils.flop_counter import FlopCounterMode
    except ImportError:
        return None
    parameter = next(module.parameters())
    image = torch.zeros((1, shape[2], shape[0], shape[1]), device=parameter.device, dtype=parameter.dtype)
    training = module.training
    module.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(image)
    module.train(training)
    return counter.get_total_flops() // 2


def names_of(library):
    """The names of a library's networks for classification. Raises Unsupported where it is not installed."""
    if library == "keras":
        raise Unsupported("networks of keras are TensorFlow's")
    try:
        module = _imported(library)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ZOOS:
            raise  # it is there, but broken
        raise Unsupported("{} is not installed in this environment".format(error.name)) from error
    if library == "timm":
        return module.list_models()
    models = module.models
    if hasattr(models, "list_models"):
        return models.list_models(module=models)
    return [name for name in dir(models) if name.islower() and callable(getattr(models, name)) and name[0] != "_"]


def _imported(library):
    """The module of a library, which may import torchvision."""
    try:
        __import__("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        sys.modules[_ABOUT_OPERATORS] = types.ModuleType(_ABOUT_OPERATORS)
    __import__("torchvision.models")
    return __import__(library)


def _own_size(library, model):
    """The pixels of an image's side that a network is meant for."""
    if library == "torchvision":
        weights_of = getattr(sys.modules["torchvision"].models, "get_model_weights", lambda model: ())
        sizes = [getattr(weights.transforms, "keywords", {}).get("crop_size") for weights in weights_of(model)]
        return next(filter(None, sizes), 299 if model == "inception_v3" else _USUAL_SIZE)
    config = sys.modules["timm"].models.get_pretrained_cfg(model)
    return config.input_size[-1] if config else _USUAL_SIZE
