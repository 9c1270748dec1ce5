"""Epoch times of the same CNN in tf.keras 1.13, by a callback: `keras_channels_first.py BATCH EPOCHS IMAGES`.

In the channels_last layout, as TensorFlow's convolutions on a CPU have no other.
"""

import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

batch, epochs, count = map(int, sys.argv[1:])


def create_model():
    x = inputs = layers.Input((32, 32, 3))
    for stage, width in enumerate((64, 128, 256)):
        if stage:
            x = layers.AveragePooling2D(2)(x)
        for _ in range(3):
            x = layers.Conv2D(width, 3, padding="same")(x)
            x = layers.BatchNormalization()(x)
            x = layers.Activation("relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.models.Model(inputs, layers.Dense(10, activation="softmax")(x))


class TimeHistory(tf.keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.start = time.time()

    def on_epoch_end(self, epoch, logs=None):
        print("epoch %d: %.3f sec, loss %.4f" % (epoch + 1, time.time() - self.start, logs["loss"]))


X_train = np.random.randint(0, 256, (count, 32, 32, 3)) / 255.0
y_train = np.random.randint(0, 10, count)
model = create_model()
model.compile(tf.keras.optimizers.SGD(0.01, momentum=0.9), loss="sparse_categorical_crossentropy")
model.fit(X_train, y_train, batch_size=batch, epochs=epochs, verbose=0, callbacks=[TimeHistory()])
