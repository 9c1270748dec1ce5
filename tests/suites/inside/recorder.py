"""An emitter that keeps what it hears. Keeps to Python 3.6: scripts use it inside environments too."""

import contextlib


class Recorder:
    """phases: "+name" and "-name" as they begin and end; samples: as given; metrics: name to (value, unit)."""

    def __init__(self):
        self.phases = []
        self.samples = []
        self.metrics = {}

    def phase_begin(self, phase):
        self.phases.append("+" + phase)

    def phase_end(self, phase):
        self.phases.append("-" + phase)

    @contextlib.contextmanager
    def phase(self, phase):
        self.phase_begin(phase)
        yield
        self.phase_end(phase)

    def sample(self, *values):
        self.samples.append(values)

    def metric(self, name, value, unit):
        self.metrics[name] = (value, unit)
