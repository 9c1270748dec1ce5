"""Published tables: what their columns hold, which numbers are cases here; one of them measured here."""
