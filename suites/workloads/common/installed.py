"""What is installed where this runs: Python packages, and in a container those of its base and of its system."""

import glob
import importlib
import os
import platform
import sys

DPKG_STATUS = "/var/lib/dpkg/status"
OS_RELEASE = "/etc/os-release"
PACKAGES_PER_EVENT = 40  # at some 50 bytes each well below the limit of one event


def python_version():
    return platform.python_version()


def versions(*names):
    """{name: version} of those of `names` that are installed; a package that does not import raises its ImportError."""
    found = {}
    for name in names:
        try:
            found[name] = importlib.import_module(name).__version__
        except ImportError as error:
            if error.name != name:  # a broken installation is not an absent one
                raise
    return found


def report(emitter, container):
    """Emits `packages`, {name: version}.

    In a `container` also what an SBOM wants beside: `base_packages`, those of the interpreter that the virtual
    environment is made from; `system_packages` as {name:architecture: version}; `os`, by os-release.
    """
    emit(emitter, "packages", python_packages())
    if not container:
        return
    emitter.environment(os=os_release())
    emit(emitter, "system_packages", system_packages())
    if sys.prefix != sys.base_prefix:
        emit(emitter, "base_packages", python_packages(base_folders()))


def emit(emitter, fact, packages):
    """One fact in as many events as it takes."""
    items = sorted(packages.items())
    for first in range(0, len(items), PACKAGES_PER_EVENT):
        emitter.environment(**{fact: dict(items[first : first + PACKAGES_PER_EVENT])})


def python_packages(folders=None):
    """{name: version} of all distributions on sys.path or in `folders`, names in lower case with '-' (PEP 503)."""
    try:
        from importlib.metadata import distributions  # novermin
    except ImportError:  # Python before 3.8
        import pkg_resources

        found = [
            (package.project_name, package.version)
            for folder in (sys.path if folders is None else folders)
            for package in pkg_resources.find_distributions(folder)
        ]
    else:
        places = {} if folders is None else {"path": folders}
        found = [(package.metadata["Name"], package.version) for package in distributions(**places)]
    packages = {}
    for name, version in found:
        if not name:  # broken metadata
            continue
        # The first on the path is the one that is imported.
        packages.setdefault(name.lower().replace("_", "-").replace(".", "-"), version)
    return packages


def base_folders():
    """Where the interpreter of a virtual environment has packages of its own."""
    library = os.path.join(sys.base_prefix, "lib", "python{}.{}".format(*sys.version_info))
    return sorted(glob.glob(os.path.join(library, "*-packages")))


def system_packages(status=DPKG_STATUS):
    """{name:architecture: version} of the Debian packages that are installed; empty on a system that has none."""
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
    """`id` and `version_id` of the system, where it says them (os-release(5))."""
    try:
        with open(path, encoding="utf-8") as file:
            fields = dict(line.strip().split("=", 1) for line in file if "=" in line)
    except OSError:
        return {}
    return {key.lower(): fields[key].strip("\"'") for key in ("ID", "VERSION_ID") if key in fields}
