"""What comes in: packages, images, data sets; fetched, held to their hashes, kept."""
