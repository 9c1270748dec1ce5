"""The graphs TensorFlow really ran: after all optimisers, one for each device. Not those that were built."""

import re

# What a tower's work shows as in the graph that ran, whatever the optimisers fused it with.
HEAVY = re.compile("Conv2D|MatMul")
TOWER = re.compile(r"(?:^|/)tower_(\d+)/")


def run_and_look(tf, session, fetches, feed=None):
    """(output, GraphDefs) of one more run. A session prepares a graph once: its earlier runs ran the same."""
    ran = tf.RunMetadata()
    output = session.run(fetches, feed, options=tf.RunOptions(output_partition_graphs=True), run_metadata=ran)
    return output, ran.partition_graphs


def transposes(graphs):
    """How many Transpose operations GraphDefs have, in functions too."""
    nodes = [node for graph in graphs for node in graph.node]
    nodes += [node for graph in graphs for function in graph.library.function for node in function.node_def]
    return sum(node.op == "Transpose" for node in nodes)


def executed_towers(tf, session, fetches):
    """{tower: device} of the towers whose convolutions (or matrix products) are in the graph that ran.

    Not in the graph that was built: towers that compute the same are merged, what nobody needs is dropped.
    """
    found = [(TOWER.search(node.name), node.device) for node in heavy_nodes(tf, session, fetches)]
    return {int(tower.group(1)): device for tower, device in found if tower}


def working_devices(tf, session, fetches):
    """The devices that compute convolutions or matrix products in the graph that ran."""
    return {node.device for node in heavy_nodes(tf, session, fetches)}


def heavy_nodes(tf, session, fetches):
    _, graphs = run_and_look(tf, session, fetches)
    return [node for graph in graphs for node in graph.node if HEAVY.search(node.op)]
