"""Towers in TensorFlow's graph mode: a graph with a copy of the network for every device, which averages gradients.

As in the multi-GPU CIFAR-10 tutorial, the variables of several towers are on the host. Every tower reads them and
computes the gradients of its share of the batch; an update takes the mean of the gradients. Batch normalisation is per
tower; the moving statistics follow the first tower's batches.
"""

from frameworks.tensorflow import networks_graph
from frameworks.tensorflow.graph_api import tf

HOST = "/cpu:0"


def step(model, batches, devices, optimizer):
    """The fetches of a step: [loss, training operation], or [loss] without an optimizer (inference).

    batches, devices: for each tower (images, labels), and a device, or None where TensorFlow chooses it. loss: the mean
    over all batches, before the step.
    """
    losses, gradients, updates = [], [], []
    for tower, ((images, labels), device) in enumerate(zip(batches, devices)):
        with tf.device(device), tf.name_scope("tower_%d" % tower):
            logits, moved = model.apply(images, training=optimizer is not None)
            losses.append(networks_graph.mean_loss(logits, labels))
            if optimizer:
                gradients.append(tf.gradients(losses[-1], model.variables))
        updates = updates or moved
    loss = tf.add_n(losses) / len(losses)
    if not optimizer:
        return [loss]
    apply = optimizer.apply_gradients(zip(mean_gradients(gradients), model.variables))
    return [loss, tf.group(apply, *updates)]


def session_config(places):
    """A CPU device for every tower on the CPU; operations without a GPU kernel run on the host."""
    cpus = max(1, places.count(None))
    return tf.ConfigProto(device_count={"CPU": cpus}, allow_soft_placement=True)


def tower_device(tower, place):
    """place: GPU index, or None for the tower's own CPU device."""
    return device_name(place, tower)


def device_name(place, cpu=0):
    """TensorFlow's name of a device. place: GPU index, or None for the CPU device of index `cpu`."""
    return "/cpu:%d" % cpu if place is None else "/gpu:%d" % place


def variables_device(places):
    """The host when several towers share them, otherwise the only tower's device."""
    return HOST if len(places) > 1 else tower_device(0, places[0])


def mean_gradients(gradients):
    """The mean over towers. gradients: for every tower, its gradients in the order of the variables."""
    if len(gradients) == 1:
        return gradients[0]
    return [tf.reduce_mean(tf.stack(of_towers), axis=0) for of_towers in zip(*gradients)]
