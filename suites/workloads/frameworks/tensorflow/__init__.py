"""TensorFlow, 1.13 to 2.x: Keras, and graph mode through tensorflow.compat.v1."""

RANK = 2
PACKAGES = ()
