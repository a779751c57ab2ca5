"""The form of the gradient: dense, or row slices for the variables of an optimizer that requests them."""

import sys
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

from splitembed import LazyAdam, SplitEmbedding
from splitembed.lookup.gradients import DistinctSlices, dense_gradient, end_request, with_gradient
from splitembed.optimizers import LazySGD
from tests.helpers.devices import two_replicas
from tests.helpers.fresh import run_fresh
from tests.helpers.models import IDS, TARGETS, functional, make_split


@pytest.fixture(autouse=True)
def no_request_is_left():
    yield
    end_request()


@pytest.fixture
def layer() -> SplitEmbedding:
    layer = SplitEmbedding(make_split())
    layer.build()
    return layer


def built(layer: SplitEmbedding, make=LazyAdam):
    optimizer = make(0.1)
    optimizer.build(layer.trainable_variables)
    return optimizer


def loss_of(layer: SplitEmbedding) -> tf.Tensor:
    return tf.reduce_sum(layer(tf.constant(IDS)) ** 2)


def is_sliced(gradient) -> bool:
    return isinstance(gradient, tf.IndexedSlices)


def both_ways(function):
    """Run a function eagerly and while TensorFlow traces it; give its Python result each time."""
    seen = [function()]
    tf.function(lambda: seen.append(function()), autograph=False).get_concrete_function()
    return seen


def test_the_gradient_is_sliced_after_scale_loss_and_dense_without_it(layer):
    optimizer, rows = built(layer), layer.trainable_rows.value

    def forms():
        with tf.GradientTape(persistent=True) as tape:
            loss = loss_of(layer)
        plain = tape.gradient(loss, rows)
        optimizer.scale_loss(loss)
        return is_sliced(plain), is_sliced(tape.gradient(loss, rows))

    assert both_ways(forms) == [(False, True)] * 2


def test_apply_ends_the_request(layer):
    optimizer, rows = built(layer), layer.trainable_rows.value

    def forms():
        with tf.GradientTape(persistent=True) as tape:
            loss = optimizer.scale_loss(loss_of(layer))
        before = tape.gradient(loss, rows)
        optimizer.apply([before], layer.trainable_variables)
        return is_sliced(before), is_sliced(tape.gradient(loss, rows))

    assert both_ways(forms) == [(True, False)] * 2


def test_the_next_forward_pass_ends_a_request_whose_gradient_was_never_taken(layer):
    optimizer = built(layer)

    def form():
        optimizer.scale_loss(loss_of(layer))
        with tf.GradientTape() as tape:
            loss = loss_of(layer)
        return is_sliced(tape.gradient(loss, layer.trainable_rows.value))

    assert both_ways(form) == [False, False]


def test_variables_of_another_optimizer_keep_a_dense_gradient(layer):
    kernel = keras.Variable(np.ones((3, 2), np.float32))
    lazy = LazyAdam(0.1)
    lazy.build([kernel])
    with tf.GradientTape() as tape:
        loss = lazy.scale_loss(tf.reduce_sum((layer(IDS) + layer(IDS)) @ kernel.value))
    assert not is_sliced(tape.gradient(loss, [layer.trainable_rows, kernel])[0])


def test_an_optimizer_that_is_not_built_requests_nothing(layer):
    with tf.GradientTape() as tape:
        loss = LazyAdam(0.1).scale_loss(loss_of(layer))
    assert not is_sliced(tape.gradient(loss, layer.trainable_rows.value))


def test_two_lazy_optimizers_in_turn_each_get_slices_of_their_own_rows():
    layers = [SplitEmbedding(make_split()) for _ in range(2)]
    for each in layers:
        each.build()
    optimizers = [built(layers[0]), built(layers[1], LazySGD)]

    def forms():
        found = []
        for layer, optimizer in zip(layers, optimizers, strict=True):
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(loss_of(layers[0]) + loss_of(layers[1]))
            gradients = tape.gradient(loss, [each.trainable_rows.value for each in layers])
            found.append([is_sliced(gradient) for gradient in gradients])
            optimizer.apply([gradients[layers.index(layer)]], layer.trainable_variables)
        return found

    assert both_ways(forms) == [[[True, False], [False, True]]] * 2


def test_of_two_losses_of_one_forward_pass_the_last_request_counts_and_both_gradients_are_right():
    layers = [SplitEmbedding(make_split()) for _ in range(2)]
    for each in layers:
        each.build()
    first, second = (built(each) for each in layers)
    with tf.GradientTape(persistent=True) as tape:
        losses = [loss_of(each) for each in layers]
    first.scale_loss(losses[0])
    second.scale_loss(losses[1])
    found = [tape.gradient(loss, each.trainable_rows.value) for loss, each in zip(losses, layers, strict=True)]
    assert [is_sliced(each) for each in found] == [False, True]
    np.testing.assert_array_equal(*(tf.convert_to_tensor(each) for each in found))


def test_nested_tapes_give_the_second_derivative(layer):
    """The inner gradient is computed from slices, the outer one of these; both equal those of dense gradients."""

    def derivatives(optimizer):
        rows = layer.trainable_rows.value
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = tf.reduce_sum(tf.sin(layer(tf.constant(IDS))))
            if optimizer is not None:
                optimizer.scale_loss(loss)
            first = tf.convert_to_tensor(inner.gradient(loss, rows))
            penalty = tf.reduce_sum(first**2)
        return first, tf.convert_to_tensor(outer.gradient(penalty, rows))

    for found, expected in zip(derivatives(built(layer)), derivatives(None), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "options", "expected"),
    [
        (LazyAdam, {}, True),
        (LazyAdam, {"run_eagerly": True}, True),
        (LazyAdam, {"jit_compile": True}, False),
        (keras.optimizers.Adam, {}, False),
    ],
)
def test_fit_requests_slices_for_a_lazy_optimizer_alone(make, options, expected):
    seen = []

    class Spy(make):
        def apply(self, grads, trainable_variables=None):
            grads = list(grads)
            seen.append(is_sliced(grads[0]))
            return super().apply(grads, trainable_variables)

    model = functional(SplitEmbedding(make_split()))
    model.compile(Spy(0.1), "mse", **{"jit_compile": False, **options})
    model.fit(IDS, TARGETS, batch_size=2, epochs=2, verbose=0)
    # the trace that builds the optimizer is dense
    assert seen[-1] == expected and (expected or not any(seen))


def test_another_thread_has_no_request(layer):
    optimizer, found = built(layer), []
    with tf.GradientTape(persistent=True) as tape:
        loss = optimizer.scale_loss(loss_of(layer))

    def take():
        found.append(is_sliced(tape.gradient(loss, layer.trainable_rows.value)))

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    take()
    assert found == [False, True]


def test_each_replica_requests_slices_for_itself():
    seen = []
    strategy = two_replicas()
    with strategy.scope():
        layer = SplitEmbedding(make_split())
        layer.build()
        optimizer = built(layer)

    @tf.function
    def step():
        def replica():
            with tf.GradientTape() as tape:
                loss = optimizer.scale_loss(loss_of(layer))
            gradients = tape.gradient(loss, layer.trainable_variables)
            seen.append(is_sliced(gradients[0]))
            optimizer.apply(gradients, layer.trainable_variables)

        strategy.run(replica)

    step()
    assert seen == [True, True]


def test_slices_of_one_call_are_known_to_be_distinct_and_those_of_two_are_not(layer):
    optimizer = built(layer)

    def kinds():
        with tf.GradientTape(persistent=True) as tape:
            losses = loss_of(layer), loss_of(layer) + loss_of(layer)
        optimizer.scale_loss(losses[0])
        return [type(tape.gradient(loss, layer.trainable_rows.value)) for loss in losses]

    assert both_ways(kinds) == [[DistinctSlices, tf.IndexedSlices]] * 2


def test_a_dense_gradient_sums_repeated_rows():
    rows = tf.Variable(np.ones((3, 2), np.float32))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(dense_gradient(rows), [1, 1, 2]))
    gradient = tape.gradient(loss, rows)
    assert not is_sliced(gradient)
    np.testing.assert_array_equal(gradient, [[0, 0], [2, 2], [1, 1]])


# Gradients of graphs


def squares(source, factor):
    """A function that defines its gradient: 10 times that of factor * source ** 2."""

    def backward(upstream):
        return 20 * upstream * source * factor, None

    return factor * source**2, backward


def test_a_tape_gets_the_gradient_eagerly_in_a_graph_and_around_one():
    source, factor = tf.Variable([1.0, 2.0]), tf.constant(3.0)

    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(with_gradient(squares, source, factor))
        return tape.gradient(loss, source)

    traced = tf.function(lambda: tf.reduce_sum(with_gradient(squares, source, factor)))
    with tf.GradientTape() as tape:
        loss = traced()
    for found in (gradient(), tf.function(gradient)(), tape.gradient(loss, source)):
        assert found.numpy().tolist() == [60, 120]


def test_gradients_inside_branches_and_loops():
    source, factor = tf.Variable([1.0]), tf.constant(1.0)

    @tf.function
    def gradient(number):
        with tf.GradientTape() as tape:
            loss = tf.cond(number > 0, lambda: with_gradient(squares, source, factor), lambda: source + 0.0)
            for _ in tf.range(number):
                loss += with_gradient(squares, source, factor)
        return tape.gradient(loss, source)

    assert [gradient(tf.constant(number)).numpy().tolist() for number in (0, 2)] == [[1], [60]]


def test_each_call_keeps_its_gradient_in_a_saved_model(tmp_path):
    module = tf.Module()
    module.source = tf.Variable([1.0])

    @tf.function(input_signature=[])
    def total():
        first = with_gradient(squares, module.source, tf.constant(1.0))
        return first + with_gradient(lambda source: (source, lambda upstream: 5 * upstream), module.source)

    module.total = total
    tf.saved_model.save(module, tmp_path, options=tf.saved_model.SaveOptions(experimental_custom_gradients=True))
    loaded = tf.saved_model.load(tmp_path)
    with tf.GradientTape() as tape:
        value = loaded.total()
    assert tape.gradient(value, loaded.source).numpy().tolist() == [25]


# memory that stays of a table of 15 MB, for each model that was made, used and deleted
LEFT = """
import gc, sys
import keras, numpy as np
import splitembed as se

def resident():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("RssAnon")) / 1024

def use(is_split, method):
    matrix = np.ones((40_000, 100), np.float32)
    layer = keras.layers.Embedding(40_000, 100, weights=[matrix], trainable=False)
    if is_split:
        layer = se.SplitEmbedding(se.SplitTable.from_matrix(matrix, [1]))
    ids = keras.Input((4,), dtype="int32")
    model = keras.Model(ids, keras.layers.Dense(1)(keras.layers.GlobalAveragePooling1D()(layer(ids))))
    model.compile("adam", "mse", jit_compile=False)
    x = np.zeros((2, 4))
    model.predict(x, verbose=0) if method == "predict" else model.fit(x, np.zeros(2), verbose=0)

for is_split, method in ((True, "predict"), (True, "fit"), (False, "fit")):
    for turn in range(8):
        use(is_split, method)
        gc.collect()
        if turn == 2:
            start = resident()
    print((resident() - start) / 5)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_deleted_models_leave_no_more_memory_than_keras_s():
    predict, fit, keras_fit = map(float, run_fresh(LEFT).split())
    assert predict < 3
    # Keras's optimizer keeps the memory of every graph that it is traced in
    assert fit < keras_fit + 3
