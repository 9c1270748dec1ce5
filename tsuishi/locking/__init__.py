"""Locks resolved anew: versions, hashes, places, the digest of the base image."""
