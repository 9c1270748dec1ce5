"""The packages that are installed here: Python's, and in a container those of the base image and the system."""

import contextlib
import glob
import importlib
import os
import platform
import re
import sys

DPKG_STATUS = "/var/lib/dpkg/status"
OS_RELEASE = "/etc/os-release"
# A folder or file about a distribution: numpy-1.16.6.dist-info, six-1.16.0-py3.6.egg-info.
INFORMATION = re.compile(r"([^/]+?)-([0-9][^-/]*)(?:-py[0-9.]+)?\.(?:dist|egg)-info$")
PACKAGES_PER_EVENT = 40  # at some 50 bytes each, well below the limit of an event


def python_version():
    return platform.python_version()


def versions(*names):
    """{name: version} of the packages that are installed. A package whose import fails raises its ImportError.

    The version of a package that does not say its own is that of its distribution, else `unknown`.
    """
    installed = {}
    for name in names:
        try:
            own = getattr(importlib.import_module(name), "__version__", None)
            installed[name] = own if isinstance(own, str) else python_packages().get(index_name(name), "unknown")
        except ImportError as error:
            if error.name != name:  # the package is there, but broken
                raise
    return installed


def importable(*names):
    """{name: version} of the packages that can be imported; others are left out."""
    found = {}
    for name in names:
        with contextlib.suppress(ImportError, RuntimeError):  # torchvision beside another PyTorch than its own
            found.update(versions(name))
    return found


def report(emitter, container):
    """Emits `packages`, {name: version}.

    In a `container` it also emits what else an SBOM lists: `base_packages`, of the interpreter that the virtual
    environment was made from; `system_packages`, {name:architecture: version}; `os`, from os-release.
    """
    emit(emitter, "packages", python_packages())
    if not container:
        return
    emitter.environment(os=os_release())
    emit(emitter, "system_packages", system_packages())
    if sys.prefix != sys.base_prefix:
        emit(emitter, "base_packages", python_packages(base_folders()))


def emit(emitter, fact, packages):
    """Emits the packages under the name `fact`, in as many events as they need."""
    items = sorted(packages.items())
    for first in range(0, len(items), PACKAGES_PER_EVENT):
        emitter.environment(**{fact: dict(items[first : first + PACKAGES_PER_EVENT])})


def python_packages(folders=None):
    """{name: version} of all distributions on sys.path or in `folders`, named as indexes name them."""
    try:
        from importlib.metadata import distributions  # novermin
    except ImportError:  # Python before 3.8
        named = [package for folder in (sys.path if folders is None else folders) for package in found_in(folder)]
    else:
        places = {} if folders is None else {"path": folders}
        named = [(package.metadata["Name"], package.version) for package in distributions(**places)]
    packages = {}
    for name, version in named:
        if not name:  # broken metadata
            continue
        # Python imports the first package of a name on the path.
        packages.setdefault(index_name(name), version)
    return packages


def index_name(name):
    """The name of a package in lower case with '-' (PEP 503)."""
    return name.lower().replace("_", "-").replace(".", "-")


def found_in(folder):
    """(name, version) of each distribution in a folder; without setuptools as the names of its folders say it."""
    try:
        import pkg_resources
    except ImportError:
        paths = glob.glob(os.path.join(glob.escape(folder or "."), "*.*-info"))
        return [found.groups() for found in map(INFORMATION.search, sorted(paths)) if found]
    return [(package.project_name, package.version) for package in pkg_resources.find_distributions(folder)]


def base_folders():
    """The folders with the packages of the interpreter that a virtual environment was made from."""
    library = os.path.join(sys.base_prefix, "lib", "python{}.{}".format(*sys.version_info))
    return sorted(glob.glob(os.path.join(library, "*-packages")))


def system_packages(status=DPKG_STATUS):
    """{name:architecture: version} of the installed Debian packages; empty on a system without dpkg."""
    try:
        with open(status, encoding="utf-8", errors="replace") as file:
            paragraphs = file.read().split("\n\n")
    except OSError:
        return {}
    packages = {}
    for paragraph in paragraphs:
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line and line[0] != " ")
        if fields.get("Status", "").endswith(" installed"):
            packages["{Package}:{Architecture}".format(**fields)] = fields["Version"]
    return packages


def os_release(path=OS_RELEASE):
    """`id` and `version_id` of the system, as far as os-release(5) has them."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = dict(line.strip().split("=", 1) for line in file if "=" in line)
    except OSError:
        return {}
    return {key.lower(): fields[key].strip("\"'") for key in ("ID", "VERSION_ID") if key in fields}
