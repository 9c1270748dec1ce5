"""Cases: what is matched across environments, machines, runs and published numbers."""

from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, PositiveInt

from tsuishi.base import toml


class Case(toml.Spec):
    """One point of a suite's axes, without the environment: what is matched across environments and machines.

    This is the closed list of axes, in canonical order. An axis a suite does not use is None and is no part of
    the case's identity, so adding an axis here changes no existing case id.
    """

    suite: str
    protocol: Literal["literal", "steady"]
    implementation: Literal["framework", "scipy", "scipy_all_cores"] | None = None
    mode: Literal["training", "inference"] | None = None
    model: Literal["cnn10", "wrn28_10", "vgg_small", "mlp"] | None = None
    # `native` is what a framework does when nothing is said: NCHW in PyTorch, NHWC in TensorFlow.
    layout: Literal["native", "channels_first", "channels_last"] | None = None
    strategy: (
        Literal["none", "towers", "data_parallel", "distributed_data_parallel", "multi_gpu_model", "mirrored"] | None
    ) = None
    devices: PositiveInt | None = None
    nodes: PositiveInt | None = None
    # Global batch, over all devices and nodes.
    batch_size: PositiveInt | None = None
    # fp32: TF32 off. amp: automatic mixed precision. fp16, bf16: nothing mixed (what a device can do at most).
    precision: Literal["fp32", "tf32", "amp_fp16", "amp_bf16", "fp16", "bf16"] | None = None
    # `compiled`: torch.compile, or XLA in TensorFlow.
    execution: Literal["native", "compiled", "cuda_graph"] | None = None
    # Where batches come from: one queue for all towers on the host or on one device (all get the same batch), a queue
    # for each device, the framework's loader of today, or a batch that is there from the start.
    pipeline: Literal["shared_host", "shared_device", "per_device", "loader", "resident"] | None = None
    operation: (
        Literal[
            "matmul",
            "memory_copy",
            "host_to_device",
            "device_to_host",
            "device_to_device",
            "kernel_launch",
            "all_reduce",
        ]
        | None
    ) = None
    # Of square matrices.
    matrix_size: PositiveInt | None = None
    buffer_mib: PositiveInt | None = None
    images: PositiveInt | None = None
    height: PositiveInt | None = None
    width: PositiveInt | None = None
    channels: PositiveInt | None = None
    filter_size: PositiveInt | None = None
    data: Literal["ones", "random"] | None = None
    feed: Literal["constant", "fed", "resident"] | None = None
    graph_optimizers: Literal["default", "no_folding", "none"] | None = None
    search: Literal["folding_edge"] | None = None

    @cached_property
    def axes(self) -> dict[str, Any]:
        """The axes this case has, in canonical order."""
        return self.model_dump(exclude_none=True)

    @cached_property
    def id(self) -> str:
        """Hash of the canonical JSON: the same case has the same id everywhere."""
        return toml.digest(self.axes)


AXES = tuple(Case.model_fields)


def _as_tuple(value: Any) -> Any:
    """A single axis value may be written without brackets."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values or any(isinstance(one, bool) or not isinstance(one, str | int) for one in values):
        raise ValueError(f"expected a word, a whole number, or a list of these; given: {value!r}")
    return values


Values = Annotated[tuple[str | int, ...], BeforeValidator(_as_tuple)]
