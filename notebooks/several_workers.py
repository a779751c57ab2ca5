"""Train one model on several machines: run this file on each machine, with a TF_CONFIG that says which one it is.

    TF_CONFIG='{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}' \\
        python several_workers.py

The second machine has `"index": 1`. Without TF_CONFIG, a single machine trains the same rows. Every machine opens the same
split and reads its own copy of the frozen rows. Only the gradients of the trainable rows are sent over the network.

The custom loop is necessary because `fit` of Keras 3 fails under `tf.distribute.MultiWorkerMirroredStrategy`.
"""

import keras
import numpy as np
import tensorflow as tf

import splitembed as se
from splitembed.data import sample_reviews, sample_vectors_path

# The number of examples in one step, on all machines together.
GLOBAL_BATCH = 40


def make_model(split: se.SplitTable) -> keras.Model:
    """Build a regression model on the mean of the embeddings. Call this in the strategy's scope."""
    ids = keras.Input((None,), dtype="int32")
    rows = se.SplitEmbedding(split)(ids)
    return keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(rows)))


def train(strategy: tf.distribute.Strategy, model, optimizer, dataset: tf.data.Dataset, epochs: int) -> float:
    """Train on a dataset of global batches, each machine on its share, and return the last mean squared error."""
    loss_of_each = keras.losses.MeanSquaredError(reduction=None)

    def step_of_replica(ids, targets):
        replicas = tf.distribute.get_replica_context()
        # The number of examples on all machines, because shares may differ in size.
        num_examples = tf.cast(replicas.all_reduce("sum", tf.shape(ids)[0]), tf.float32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of_each(targets, model(ids, training=True))) / num_examples
            # With LazyAdam, this requests row slices from the layer instead of a dense gradient.
            scaled = optimizer.scale_loss(loss)
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
    """Train on the sample that comes with the package."""
    # This must be the first call to TensorFlow.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    texts, scores = sample_reviews()
    vectorize = keras.layers.TextVectorization(output_sequence_length=50)
    vectorize.adapt(texts)
    split = se.build_split(vectorize, sample_vectors_path(), seed=0)
    dataset = tf.data.Dataset.from_tensor_slices((vectorize(texts), scores[:, None].astype(np.float32)))
    # The same first weights on every machine.
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model, optimizer = make_model(split), se.LazyAdam(0.01)
    error = train(strategy, model, optimizer, dataset.batch(GLOBAL_BATCH), epochs=3)
    print(f"{strategy.num_replicas_in_sync} workers, mean squared error {error:.4f}")
    # All machines have the same rows, so that one of them saves.
    if strategy.cluster_resolver.task_id in (None, 0):
        model.layers[1].to_split().save("reviews")


if __name__ == "__main__":
    main()
