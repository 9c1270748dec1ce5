"""The probe of the test workloads: like the real one, without a framework."""

import platform

from common import installed


def run(request, emitter):
    emitter.environment(python=platform.python_version(), versions={}, framework=None)
    installed.report(emitter, request.settings.get("container", False))
