"""One convolution of 840 images, split over towers: `conv2d_gce.py TOWERS`. As posts on TensorFlow 1.x time it."""

import sys
import time

import numpy as np
import tensorflow as tf

towers = int(sys.argv[1])
samples = np.ones((840, 100, 100, 1), np.float32)
kernel = np.ones((3, 3, 1, 1), np.float32)

results = []
for part in tf.split(samples, towers):
    with tf.device("/cpu:0"):
        results.append(tf.nn.conv2d(part, kernel, [1, 1, 1, 1], "SAME"))
with tf.device("/cpu:0"):
    total = tf.add_n(results)

with tf.Session(config=tf.ConfigProto(log_device_placement=True)) as sess:
    start = time.time()
    sess.run(total)
    print("%d towers: %.6f ms" % (towers, (time.time() - start) * 1000))
    for _ in range(5):
        start = time.time()
        sess.run(total)
        print("again: %.6f ms" % ((time.time() - start) * 1000))
