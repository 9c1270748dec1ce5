"""How training images are distorted, in every framework.

The source does not show its _distort. Assumed are the steps and ranges of TensorFlow's CIFAR-10 tutorial of the time,
except that the size is kept: a random crop of 32x32 from the image with a margin of zeros, flipped left to right half
of the time, brightness, contrast about each channel's mean; then whitened: mean 0, standard deviation 1 of all values.
"""

MARGIN = 4  # pixels on each side
BRIGHTNESS = 63.0  # at most so much is added or taken, of 0..255
CONTRAST = (0.2, 1.8)  # range of the factor
