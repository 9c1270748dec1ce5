"""Training and inference on CIFAR-10 (and MNIST's shape): how step and epoch times depend on batch, devices, framework.

Sources torch-2080ti, keras-channels-first, batch-throughput. Axes:
    protocol    `literal` times whole epochs as a user would run them, on shuffled data of the host, and inference by
                the package of a source; where the settings have `readings`, so many passes one by one, as another
                source did; `steady` times synchronised blocks of steps, on a fixed batch that is already on the devices
                unless `batches` says else
    mode        training or inference
    model       a network of common/networks.py, or of a library, as "timm:resnet50"
    image_size  pixels of an image's side; the network's own if not given
    layout      of the images; `native` is each framework's own (PyTorch channels_first, TensorFlow channels_last)
    strategy    how several devices share a batch
    devices     over all nodes, each with as many
    nodes       machines of a cluster, on which torchrun has started this program (common/launch.py)
    batch_size  over all devices
    precision   fp32 has TF32 off; fp16, bf16 and fp64 are the type of everything: weights, images, loss
    execution   `compiled` is torch.compile or XLA
    loader      of literal training: how batches are made on the host; TENSORS, from arrays that are ready, if not given
    batches     of steady training: RESIDENT if not given, else how the next shuffled batch comes from the host
    convolution_tuning
                of steady training on GPUs: TUNED if not given; UNTUNED is PyTorch's default, which literal epochs keep

The last batch of an epoch may be smaller: it is trained on, and its images count.
"""

import math

import numpy as np

import frameworks
from common import devices, jobs, launch, networks, timing
from common.events import Unsupported

AXES = (
    "protocol",
    "mode",
    "model",
    "image_size",
    "layout",
    "strategy",
    "devices",
    "nodes",
    "batch_size",
    "precision",
    "execution",
    "loader",
    "batches",
    "convolution_tuning",
)
# Axes of a single protocol, with their usual values: why the other protocol has no other value.
OF_PROTOCOL = {
    "loader": ("literal", jobs.TENSORS, "loads nothing"),
    "batches": ("steady", jobs.RESIDENT, "feeds as its source did"),
    "convolution_tuning": ("steady", jobs.TUNED, "tunes as its source did"),
}
WHOLE = ("fp16", "bf16", "fp64")  # precisions of everything, with nothing mixed
# Bytes of a value that passes between layers, and of a weight; 4 and 4 where a precision is not here.
BYTES = {"amp_fp16": (2, 4), "amp_bf16": (2, 4), "fp16": (2, 2), "bf16": (2, 2), "fp64": (8, 8)}


def check(request):
    """Raises Unsupported for a case that no framework can run here."""
    check_case(request.case)
    check_devices(request)


def check_case(case):
    """ValueError for axes or values that are unknown or do not fit, Unsupported for what no framework can do."""
    for axis, (_, usual, _) in OF_PROTOCOL.items():
        case.setdefault(axis, usual)
    if case.setdefault("image_size", None) is not None:
        case.positive("image_size")
    case.require_only(AXES)
    case.one_of("protocol", ("literal", "steady"))
    case.one_of("mode", ("training", "inference"))
    if not networks.is_of_zoo(case["model"]):
        case.one_of("model", sorted(networks.NETWORKS))
    case.one_of("layout", ("native", "channels_first", "channels_last"))
    case.one_of("strategy", sorted({known for name in frameworks.names() for known in frameworks.strategies(name)}))
    case.one_of("precision", ("fp32", "tf32", "amp_fp16", "amp_bf16") + WHOLE)
    case.one_of("execution", ("native", "compiled", "cuda_graph"))
    for axis in ("devices", "nodes", "batch_size"):
        case.positive(axis)
    if case["devices"] % case["nodes"]:
        raise ValueError("{devices} devices cannot be split evenly over {nodes} nodes".format(**case))
    if (case["devices"] > 1) == (case["strategy"] == "none"):
        raise Unsupported(
            "strategy {!r} with {} device(s): 'none' is for one device, the others for several".format(
                case["strategy"], case["devices"]
            )
        )
    if case["batch_size"] % case["devices"]:
        raise ValueError(
            "a batch of {} cannot be split evenly over {} devices".format(case["batch_size"], case["devices"])
        )


def check_devices(request):
    """Raises Unsupported for a case that the devices cannot run in any framework."""
    case = request.case
    places = devices.placement(request, case["devices"], case["nodes"])
    devices.check_tf32(case["precision"] == "tf32", places)
    devices.check_bf16(case["precision"], places)
    for axis, value, why, instead in (
        ("batches", jobs.HOST_PINNED, "memory is pinned for copies to a GPU", jobs.HOST),
        ("convolution_tuning", jobs.UNTUNED, "cuDNN tunes convolutions of GPUs: there is nothing to tune", jobs.TUNED),
    ):
        if case[axis] == value and None in places:
            raise Unsupported("{} {!r}: {}, and this is a CPU; {!r} would run".format(axis, value, why, instead))


def possible(request):
    """Raises Unsupported where the case cannot be run; returns the tries that tell more."""
    check(request)
    _, strategy, job = make_job(request)
    return strategy.tries(job)


def make_job(request):
    """(Framework, Strategy, jobs.Job without its data) for a checked case. Raises Unsupported where there is none."""
    case = request.case
    framework = frameworks.load(request)
    framework.require_tf32(case["precision"] == "tf32")
    strategy = framework.strategy(case["strategy"])
    if case["protocol"] == "literal" and getattr(strategy, way(request)) is None:
        raise Unsupported(
            "protocol 'literal' with mode {mode!r}, strategy {strategy!r}: no source did so; 'steady' would run".format(
                **case
            )
        )
    if case["precision"] in WHOLE and case["precision"] not in strategy.whole:
        raise Unsupported(
            "precision {!r}: strategy {!r} of {} does not compute everything in this type; 'fp32' would run".format(
                case["precision"], case["strategy"], framework.name
            )
        )
    if case["nodes"] > 1 and not strategy.spans_nodes:
        raise Unsupported(
            "{} nodes with strategy {!r}: a single process drives its devices; 'distributed_data_parallel' would "
            "run".format(case["nodes"], case["strategy"])
        )
    known = {"loader": strategy.loaders, "batches": strategy.batches, "convolution_tuning": strategy.tunings}
    for axis, (protocol, usual, why) in OF_PROTOCOL.items():
        value = case[axis]
        if value not in known[axis]:
            raise Unsupported(
                "{} {!r}: {} has none of that name with strategy {!r}; {!r} would run".format(
                    axis, value, framework.name, case["strategy"], usual
                )
            )
        if value != usual and case["protocol"] != protocol:
            raise Unsupported(
                "{} {!r}: protocol {!r} {}; {!r} would run".format(axis, value, case["protocol"], why, protocol)
            )
    if case["batches"] != jobs.RESIDENT and case["execution"] == "cuda_graph":
        raise Unsupported(
            "execution 'cuda_graph' with batches {!r}: a graph keeps its batch; 'native' would run".format(
                case["batches"]
            )
        )
    job = jobs.Job(
        chosen_network(framework, case["model"], case["image_size"]),
        case["mode"],
        framework.layout if case["layout"] == "native" else case["layout"],
        case["strategy"],
        devices.placement(request, case["devices"], case["nodes"]),
        case["batch_size"],
        case["precision"],
        case["execution"],
        None,
        None,
        request.settings,
        case["loader"],
        case["batches"],
        case["convolution_tuning"],
        nodes=case["nodes"],
    )
    strategy.check(job, case["protocol"])
    return framework, strategy, job


def way(request):
    """Which of a strategy's trainers the case has: steady, literal, packaged or single.

    A source's package makes its images itself: as many as it likes.
    """
    protocol = request.case["protocol"]
    if jobs.is_single(protocol, request.settings):
        return "single"
    return "packaged" if (protocol, request.case["mode"]) == ("literal", "inference") else protocol


def chosen_network(framework, name, image_size):
    """The networks.Network of a case. Raises Unsupported where there is none of that name and size."""
    if networks.is_of_zoo(name):
        return framework.part("zoos").network(name, image_size)
    network = networks.NETWORKS[name]
    try:
        return network if image_size is None else networks.resized(network, image_size)
    except ValueError as error:
        raise Unsupported(str(error)) from error


def prepared(request, emitter):
    """As make_job, with the job's data; also sets the framework's flags and emits the environment."""
    launch.check(request.case["nodes"])
    framework, strategy, job = make_job(request)
    framework.set_tf32(job.precision == "tf32")
    job, synthetic = (job, True) if way(request) == "packaged" else jobs.with_data(job, request)
    strategy.prepare(job, request.case["protocol"])
    of_zoo = networks.is_of_zoo(job.network.name)
    flags = {"networks_of": framework.part("zoos").version(job.network)} if of_zoo else {}
    framework.report(emitter, request, layout=job.layout, **flags)
    emitter.environment(simulated=devices.simulated(job.places, job.nodes), synthetic=synthetic)
    return framework, strategy, job


def run(request, emitter):
    check(request)
    framework, strategy, job = prepared(request, emitter)
    training = job.mode == "training"
    if not networks.is_of_zoo(job.network.name) and way(request) != "packaged":
        emitter.metric("flops", networks.flops(job.network, job.batch_size, training), "1")
        sizes = BYTES.get(job.precision, (4, 4))
        emitter.metric("bytes", networks.least_bytes(job.network, job.batch_size, training, *sizes), "B")
    budget = timing.Budget(request.budget_s)
    timed = {"steady": steady, "literal": literal, "packaged": literal_inference, "single": one_by_one}[way(request)]
    with framework.may_be_refused(job.layout, job.precision, request.accelerator):
        trainer = timed(strategy, job, emitter, budget)
        after(trainer, job, emitter)
    trainer.close()


def steady(strategy, job, emitter, budget):
    """Times blocks of steps on a fixed batch; emits metrics initial_loss (before the first step) and final_loss.

    It then times those parts of a step, forward pass or gradients, on their own that settings["parts"] names and the
    trainer has. Returns the trainer.
    """
    trainer = strategy.steady(job)
    emit_parameters(trainer, job, emitter)
    losses = []

    def step():
        losses[1:] = [trainer.step()]  # keeps the first and the last

    def time(step, phase="measure"):
        images, announce = job.batch_size, trainer.announce
        timing.steady(emitter, step, trainer.synchronise, images, job.settings, phase, budget=budget, announce=announce)

    time(step)
    for name, loss in zip(("initial_loss", "final_loss"), trainer.mean_losses([losses[0], losses[-1]])):
        emit_loss(name, loss, emitter)
    if job.settings["parts"] and job.mode == "training":
        for phase, part in timing.asked_for(trainer.parts(), job.settings):
            time(part, phase)
    return trainer


def literal(strategy, job, emitter, budget):
    """Times epochs as a user would run them, then computes the accuracy outside the clock. Returns the trainer.

    Emits metrics final_loss (mean over the last epoch) and test_accuracy.
    """
    trainer = strategy.literal(job)
    emit_parameters(trainer, job, emitter)
    steps = math.ceil(len(job.train[1]) / job.batch_size) * timing.least_epochs(job.settings)
    final_loss = trainer.fit(emitter, timing.EpochProbe(budget, steps, trainer.synchronise))
    with emitter.phase("evaluate"):
        images, labels = job.test
        accuracy = np.mean(trainer.logits(images).argmax(axis=1) == labels)
    emit_loss("final_loss", final_loss, emitter)
    emitter.metric("test_accuracy", float(accuracy), "1")
    return trainer


def literal_inference(strategy, job, emitter, budget):
    """Has a source's package time inference, and emits all that it timed as one sample. Returns the trainer."""
    trainer = strategy.packaged(job)
    emit_parameters(trainer, job, emitter)
    with emitter.phase("package"):  # it does more than it times: it warms up, profiles, and times a single image
        timed = trainer.infer()
    emitter.sample("measure", 0, *timed)
    return trainer


def one_by_one(strategy, job, emitter, budget):
    """Times passes one by one, each a sample, with the devices synchronised around it. Returns the trainer."""
    trainer = strategy.single(job)
    emit_parameters(trainer, job, emitter)
    settings, announce = timing.one_by_one(job.settings), trainer.announce
    timing.steady(
        emitter, trainer.step, trainer.synchronise, job.batch_size, settings, budget=budget, announce=announce
    )
    return trainer


def after(trainer, job, emitter):
    """Emits metrics of compilation, of memory, of the graph that ran and of replicas, after all timing."""
    compile_s = trainer.compile_s()
    if compile_s is not None:
        emitter.metric("compile_s", compile_s, "s")
    peak_mib = trainer.peak_device_memory_mib()
    if peak_mib is not None:
        emitter.metric("peak_device_memory_mib", peak_mib, "MiB")
    counted = trainer.multiply_adds() if networks.is_of_zoo(job.network.name) else None
    if counted is not None:
        emitter.metric("flops", networks.flops_of(counted, job.batch_size, job.mode == "training"), "1")
    transposes = trainer.transposes()
    if transposes is not None:
        emitter.metric("transposes_in_step", transposes, "1")
    if trainer.machines() < job.nodes:
        emitter.environment(simulated=True)  # nodes of a cluster that is a single machine, in a test say
    replicas = trainer.replicas() if len(job.places) > 1 else None
    if replicas is not None:
        emitter.metric("replicas", replicas, "1")


def emit_parameters(trainer, job, emitter):
    """Emits metric trainable_parameters. Raises AssertionError where the network has another number of them."""
    count, expected = trainer.parameter_count(), job.network.parameters
    if expected is not None and count != expected:
        raise AssertionError(
            "{} has {} trainable parameters; it must have {}".format(job.network.name, count, expected)
        )
    emitter.metric("trainable_parameters", count, "1")


def emit_loss(name, loss, emitter):
    """Emits a loss as a metric. Raises ArithmeticError where it is not finite."""
    loss = float(loss)
    if not math.isfinite(loss):
        raise ArithmeticError("{} is {}: the training diverged".format(name, loss))
    emitter.metric(name, loss, "1")
