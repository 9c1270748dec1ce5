"""The graphs TensorFlow really ran: after all optimisers, one for each device. Not those that were built."""


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
