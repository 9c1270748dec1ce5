"""Releases of a framework: the release that changed a value, locks of further releases, their section of a report."""
