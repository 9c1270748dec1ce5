"""Engines: how an environment is made and entered. One file each, the same verbs in all (see base.py)."""
