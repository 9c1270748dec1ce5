"""The frameworks that experiments run in, a folder each: which there are is found by files. See interface.py.

A folder without a facts.py is no framework that a case can be run in: numpy/ holds what all others are held to.
"""

import importlib
import os

from common.events import Unsupported

HERE = os.path.dirname(os.path.abspath(__file__))


def names():
    """All frameworks, in the order in which they are tried when none is asked for. Imports none of them."""
    found = [name for name in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, name, "facts.py"))]
    return sorted(found, key=lambda name: (_folder(name).RANK, name))


def packages():
    """What belongs to a framework beside its own package, of all frameworks."""
    return [package for name in names() for package in _folder(name).PACKAGES]


def _folder(name):
    return importlib.import_module("frameworks." + name)


def strategies(name):
    """The strategies that a framework has, sorted."""
    files = os.listdir(os.path.join(HERE, name, "strategies"))
    return sorted(file[: -len(".py")] for file in files if file.endswith(".py") and file != "__init__.py")


def load(request):
    """The Framework asked for, or the first that is installed.

    Raises Unsupported when there is none; an installed framework that does not import raises its own ImportError.
    """
    if request.accelerator == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # TensorFlow takes every GPU it sees, asked or not
    tried = (request.framework,) if request.framework else names()
    for name in tried:
        try:
            return importlib.import_module("frameworks.{}.facts".format(name)).Framework()
        except ImportError as error:
            if error.name != name:  # a broken installation is not an absent one
                raise
    raise Unsupported("none of {} is installed in this environment".format(", ".join(tried)))
