"""The graphs that TensorFlow really ran, for each device: not the graphs that were built, but after all optimisers."""

import re

# Operations of a tower's work in the graph that ran; optimisers that fuse operations keep these words in the names.
HEAVY = re.compile("Conv2D|MatMul")
TRANSPOSES = ("Transpose", "_MklTranspose")  # the second is oneDNN's, on CPUs
TOWER = re.compile(r"(?:^|/)tower_(\d+)/")


def run_and_look(tf, session, fetches, feed=None):
    """(output, GraphDefs) of another run. A session prepares a graph once, so that its earlier runs had the same."""
    ran = tf.RunMetadata()
    output = session.run(fetches, feed, options=tf.RunOptions(output_partition_graphs=True), run_metadata=ran)
    return output, ran.partition_graphs


def transposes(graphs):
    """The number of Transpose operations in GraphDefs and their functions."""
    nodes = [node for graph in graphs for node in graph.node]
    nodes += [node for graph in graphs for function in graph.library.function for node in function.node_def]
    return sum(node.op in TRANSPOSES for node in nodes)


def executed_towers(tf, session, fetches):
    """{tower: device} of the towers whose convolutions (or matrix products) are in the graph that ran.

    The optimisers merge towers that compute the same, and drop towers whose results are not needed.
    """
    named = [(TOWER.search(node.name), node.device) for node in heavy_nodes(tf, session, fetches)]
    return {int(tower.group(1)): device for tower, device in named if tower}


def working_devices(tf, session, fetches):
    """The devices that compute convolutions or matrix products in the graph that ran."""
    return {node.device for node in heavy_nodes(tf, session, fetches)}


def heavy_nodes(tf, session, fetches):
    _, graphs = run_and_look(tf, session, fetches)
    return [node for graph in graphs for node in graph.node if HEAVY.search(node.op)]
