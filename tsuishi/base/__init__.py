"""The ground: errors, files, TOML, settings, threads, the screen. It knows nothing of experiments."""
