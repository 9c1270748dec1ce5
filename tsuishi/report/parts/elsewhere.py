"""Words of a report that are written down elsewhere, in rooms that know no language: here catalogues find them."""

from tsuishi.base.language import mark

# Of quantities.QUANTITIES.
QUANTITIES = (
    mark("first run"),
    mark("later runs, median"),
    mark("host to device"),
    mark("compute"),
    mark("device to host"),
    mark("step, median"),
    mark("throughput"),
    mark("distinct images"),
    mark("first step"),
    mark("second step"),
    mark("first epoch"),
    mark("later epochs, median"),
    mark("100 epochs"),
    mark("accuracy on the test images"),
    mark("ideal speed"),
    mark("cost time"),
    mark("arithmetic"),
    mark("memory traffic"),
    mark("fraction of the limit"),
    mark("load, mean of the GPUs"),
    mark("imbalance of the GPUs' load"),
    mark("memory taken, least of the GPUs"),
    mark("memory taken, peak of the GPUs"),
    mark("energy per image"),
)

# Phases and metrics of suites/workloads, which may have any; one that is not here keeps its name.
METRICS = (
    mark("batch norm relative difference"),
    mark("bytes"),
    mark("compute first step"),
    mark("compute second step"),
    mark("convolutions in graph"),
    mark("convolutions left in graph"),
    mark("counts tried"),
    mark("device to host first step"),
    mark("device to host second step"),
    mark("devices used"),
    mark("distinct images per step"),
    mark("examples per step"),
    mark("final loss"),
    mark("flops"),
    mark("forward"),
    mark("forward backward"),
    mark("forward backward first step"),
    mark("forward backward second step"),
    mark("forward first step"),
    mark("forward second step"),
    mark("gradient relative error"),
    mark("host to device first step"),
    mark("host to device second step"),
    mark("initial loss"),
    mark("largest folded images"),
    mark("largest folded input"),
    mark("largest folded run"),
    mark("logits relative error"),
    mark("loss"),
    mark("loss relative error"),
    mark("max relative error"),
    mark("outputs checked"),
    mark("peak device memory"),
    mark("replicas"),
    mark("smallest unfolded images"),
    mark("smallest unfolded input"),
    mark("smallest unfolded run"),
    mark("step relative error"),
    mark("trainable parameters"),
    mark("transposes in step"),
)

# Of analysis.frames.STATUSES, as status_text says them.
STATUSES = (
    mark("ok"),
    mark("out of memory"),
    mark("unsupported"),
    mark("skipped"),
    mark("timeout"),
    mark("failed"),
    mark("interrupted"),
    mark("missing"),
)

# Of analysis.frames: the one reason that no run recorded.
WHY_MISSING = mark("planned, but the run was stopped before it: go on with `invoke run-suite --resume latest`")
