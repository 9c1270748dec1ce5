"""A crash in the middle, after some numbers."""

import sys

print("step 0: 0.5 s")
print("step 1: 0.6 s")
sys.stdout.flush()
if len(sys.argv) > 1 and sys.argv[1] == "memory":
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
if len(sys.argv) > 1 and sys.argv[1] == "segv":
    import ctypes

    ctypes.string_at(0)
raise ValueError("shapes (3,) and (4,) do not fit")
