"""Files on their way in: found, fetched, held to their hashes, kept."""
