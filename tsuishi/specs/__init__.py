"""Specifications: environments, suites, cases, claims and sources, as their TOML files describe them."""
