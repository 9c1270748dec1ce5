"""Handing over: archives of runs with signatures, replays of them, exports of environments, a registry of a site."""
