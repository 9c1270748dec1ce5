"""Files from outside: packages, images and data sets. They are fetched, verified by their hashes, and kept."""
