"""Makes locks: versions, hashes and URLs of packages, and the digest of the base image."""
