"""An environment from its spec to "ready": built, probed, and held to its promises."""
