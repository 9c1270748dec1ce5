"""The probe of the test workloads: like the real one, without a framework."""

import platform
from importlib.metadata import distributions  # novermin

import events


def probe(request, emitter):
    packages = {package.metadata["Name"].lower().replace("_", "-"): package.version for package in distributions()}
    emitter.environment(python=platform.python_version(), versions={}, framework=None)
    for name, version in packages.items():
        emitter.environment(packages={name: version})


if __name__ == "__main__":
    events.main(probe)
