"""The frameworks that experiments run in: every folder with a facts.py is a framework. See interface.py.

numpy/ has no facts.py: no case runs in it; the results of all frameworks are compared with it.
"""

import contextlib
import importlib
import os
import pkgutil
import sys

from common import events
from common.events import Unsupported

HERE = os.path.dirname(os.path.abspath(__file__))
TF32_OVERRIDE = "NVIDIA_TF32_OVERRIDE"  # "0": no library rounds FP32 to TF32, whatever its program asks for


def names():
    """All frameworks, in the order in which load() tries them. Imports none of them."""
    folders = [name for name in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, name, "facts.py"))]
    return sorted(folders, key=lambda name: (_folder(name).RANK, name))


def packages():
    """The names of the packages that belong to the frameworks, beside the frameworks' own."""
    return [package for name in names() for package in _folder(name).PACKAGES]


def _folder(name):
    return importlib.import_module("frameworks." + name)


def _variables(name, request):
    """The environment variables that a framework wants for a request; a folder that says nothing wants none."""
    return getattr(_folder(name), "variables", lambda request: {})(request)


def strategies(name):
    """The strategies that a framework has, sorted."""
    return modules(os.path.join(HERE, name, "strategies"))


def modules(folder):
    """The names of the Python modules in a folder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules([folder]))


def load(request):
    """The Framework that the request names, or the first that is installed.

    Raises Unsupported where it is not installed, and the framework's own ImportError where it is broken.
    """
    if request.accelerator == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # otherwise TensorFlow takes every GPU
    # CUDA's libraries read it at their start: NVIDIA's TensorFlow 1.15 has no other switch of TF32, and has it on.
    os.environ[TF32_OVERRIDE] = "0"
    if request.case.get("precision") == "tf32":
        del os.environ[TF32_OVERRIDE]
    tried = (request.framework,) if request.framework else names()
    for name in tried:
        os.environ.update(_variables(name, request))
        try:
            return importlib.import_module("frameworks.{}.facts".format(name)).Framework()
        except ImportError as error:
            if error.name != name:  # the framework is there, but broken
                raise
    raise Unsupported("none of {} is installed in this environment".format(", ".join(tried)))


def failure(error):
    """(kind, text) of an exception; see events.failure. The allocators are those of frameworks that are imported."""
    return events.failure(error, _allocators)


def _allocators():
    found = []
    for name in names():
        facts = sys.modules.get("frameworks.{}.facts".format(name))
        if facts is not None:
            with contextlib.suppress(Exception):  # after a failure, a device may answer nothing any more
                found += facts.Framework().allocators()
    return found


def load_part(request, file, name):
    """(Framework, its part) for a request: the part is an instance of the class `name` in the framework's <file>.py.

    Raises Unsupported where there is no such part, or where it cannot run the case.
    """
    framework = load(request)
    part = getattr(framework.part(file), name)()
    part.check(request.case)
    return framework, part
