"""A VGG-style network fed by a queue of TensorFlow 1.x, with a log: `towers_titanx.py BATCH STEPS`."""

import sys
import time

import numpy as np
import tensorflow as tf

batch, steps = map(int, sys.argv[1:])


def distorted(image):
    image = tf.pad(tf.cast(image, tf.float32), [[4, 4], [4, 4], [0, 0]])
    image = tf.image.random_flip_left_right(tf.random_crop(image, [32, 32, 3]))
    image = tf.image.random_contrast(tf.image.random_brightness(image, 63), 0.2, 1.8)
    return tf.image.per_image_standardization(image)


def inputs():
    images = tf.Variable(np.random.randint(0, 256, (4096, 32, 32, 3)).astype(np.uint8), trainable=False)
    labels = tf.Variable(np.random.randint(0, 10, 4096).astype(np.int64), trainable=False)
    index = tf.train.range_input_producer(4096, shuffle=False).dequeue()
    record = [distorted(tf.gather(images, index)), tf.gather(labels, index)]
    return tf.train.batch(record, batch, num_threads=6)


def inference(x):
    for width, depth in ((64, 2), (128, 2), (256, 3)):
        for _ in range(depth):
            x = tf.layers.conv2d(x, width, 3, padding="same", activation=tf.nn.relu)
        x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.dense(tf.layers.flatten(x), 512, activation=tf.nn.relu)
    return tf.layers.dense(x, 10)


images, labels = inputs()
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=inference(images)))
train = tf.train.AdamOptimizer(0.001).minimize(loss)

with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.global_variables_initializer())
    coord = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(sess, coord)
    for step in range(steps + 1):
        start = time.time()
        _, value = sess.run([train, loss])
        duration = time.time() - start
        if step % 10 == 0:
            line = "step %d, loss = %.2f (%.1f examples/sec; %.3f sec/batch)"
            print(line % (step, value, batch / duration, duration))
    coord.request_stop()
    coord.join(threads)
