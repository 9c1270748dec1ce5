"""JAX 0.10, which compiles whole functions by XLA."""

RANK = 3
PACKAGES = ("jaxlib",)


def variables(request):
    """The processors that JAX may use, and the number of virtual devices of the CPU. JAX reads both once, at its start.

    With "cuda,cpu" JAX fails where there is no GPU; by default it would compute on the CPU, with a warning in the log.
    """
    return {
        "JAX_PLATFORMS": "cpu" if request.accelerator == "cpu" else "cuda,cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count={}".format(request.case.get("devices", 1)),
    }
