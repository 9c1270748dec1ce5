"""What is asked: environments, suites, cases, claims and sources, as their TOML files say it."""
