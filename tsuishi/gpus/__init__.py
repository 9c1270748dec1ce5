"""The GPUs of this machine: what they are, who uses them, and which environments they run."""
