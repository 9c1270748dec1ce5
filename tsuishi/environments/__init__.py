"""Environments from the spec to "ready": built, asked for their versions, and compared with their promises."""
