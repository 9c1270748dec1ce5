"""What an environment says it is, asked right after it was built. Needs no case."""

import events  # noqa: I001  first, as its import starts the clock of `t`
import platform
import sys
import time

import frameworks

PACKAGES_PER_EVENT = 40  # at some 50 bytes each well below the limit of one event


def probe(request, emitter):
    emitter.environment(implementation=platform.python_implementation(), executable=sys.executable)
    begin = time.perf_counter()
    name, module = frameworks.load(request)
    emitter.metric("import_s", time.perf_counter() - begin, "s")
    frameworks.report(emitter, name, module, request, cuda_usable=cuda_usable(name, module))
    emitter.environment(versions=frameworks.versions("torch", "tensorflow", "torchvision", "numpy", "scipy"))
    emitter.environment(simulated=False, synthetic=False)
    packages = sorted(installed_packages().items())
    for first in range(0, len(packages), PACKAGES_PER_EVENT):
        emitter.environment(packages=dict(packages[first : first + PACKAGES_PER_EVENT]))


def cuda_usable(name, module):
    """Whether the framework itself finds a GPU it can use; starts the device."""
    if name == "torch":
        return module.cuda.is_available()
    return module.test.is_gpu_available()


def installed_packages():
    """{name: version} of all installed distributions, names in lower case with '-' (PEP 503)."""
    try:
        from importlib.metadata import distributions  # novermin
    except ImportError:  # Python before 3.8
        import pkg_resources

        found = [(package.project_name, package.version) for package in pkg_resources.working_set]
    else:
        found = [(package.metadata["Name"], package.version) for package in distributions()]
    packages = {}
    for name, version in found:
        if not name:  # broken metadata
            continue
        # The first on the path is the one that is imported.
        packages.setdefault(name.lower().replace("_", "-").replace(".", "-"), version)
    return packages


if __name__ == "__main__":
    events.main(probe)
