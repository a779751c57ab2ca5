"""Train one model on several machines: run this file on each of them, with TF_CONFIG saying which one it is.

    TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}' \\
        python several_workers.py

The second machine has `"index": 1`; without TF_CONFIG one machine trains alone, to the same rows. Every machine opens
the same split: the frozen rows are read where each has them, only the gradients of the trainable rows travel.

The loop is needed because `fit` of Keras 3 fails under `tf.distribute.MultiWorkerMirroredStrategy`.
"""

import keras
import numpy as np
import tensorflow as tf

import splitembed as se
from splitembed.data import sample_reviews, sample_vectors_path

GLOBAL_BATCH = 40  # examples of one step, on all machines together


def make_model(split: se.SplitTable) -> keras.Model:
    """A mean of embeddings, and one number from it. Make model and optimizer in the strategy's scope."""
    ids = keras.Input((None,), dtype="int32")
    rows = se.SplitEmbedding(split)(ids)
    return keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(rows)))


def train(strategy: tf.distribute.Strategy, model, optimizer, dataset: tf.data.Dataset, epochs: int) -> float:
    """Trains on a dataset of global batches, each machine on its share; returns the last batch's mean squared error."""
    loss_of_each = keras.losses.MeanSquaredError(reduction=None)

    def step_of_replica(ids, targets):
        replicas = tf.distribute.get_replica_context()
        num_examples = tf.cast(replicas.all_reduce("sum", tf.shape(ids)[0]), tf.float32)  # on all machines
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of_each(targets, model(ids, training=True))) / num_examples
            scaled = optimizer.scale_loss(loss)  # asks the layer for row slices, where the optimizer is LazyAdam
        gradients = tape.gradient(scaled, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    @tf.function
    def step(ids, targets):
        return strategy.reduce("sum", strategy.run(step_of_replica, (ids, targets)), axis=None)

    with strategy.scope():
        optimizer.build(model.trainable_variables)
    distributed = strategy.experimental_distribute_dataset(dataset)
    for _ in range(epochs):
        for ids, targets in distributed:
            loss = step(ids, targets)
    return float(loss)


def main() -> None:
    """Trains on the sample that the package brings along."""
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # before TensorFlow does anything else
    texts, scores = sample_reviews()
    vectorize = keras.layers.TextVectorization(output_sequence_length=50)
    vectorize.adapt(texts)
    split = se.build_split(vectorize, sample_vectors_path(), seed=0)
    dataset = tf.data.Dataset.from_tensor_slices((vectorize(texts), scores[:, None].astype(np.float32)))
    keras.utils.set_random_seed(0)  # the same first weights everywhere
    with strategy.scope():
        model, optimizer = make_model(split), se.LazyAdam(0.01)
    error = train(strategy, model, optimizer, dataset.batch(GLOBAL_BATCH), epochs=3)
    print(f"{strategy.num_replicas_in_sync} workers, mean squared error {error:.4f}")
    if strategy.cluster_resolver.task_id in (None, 0):  # all have the same rows: one saves them
        model.layers[1].to_split().save("reviews")


if __name__ == "__main__":
    main()
