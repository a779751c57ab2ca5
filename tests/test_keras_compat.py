"""Each private name of Keras, TensorFlow and CPython still does what the package uses it for."""

import ast
import inspect
import pickle
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import layers, ops

from splitembed import keras_compat

IDS = np.array([[1, 2, 0], [3, 0, 0]])
on_tensorflow = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of TensorFlow alone")


def functional() -> keras.Model:
    ids = keras.Input((None,), dtype="int32")
    return keras.Model(ids, layers.Dense(2, name="head")(layers.Embedding(5, 4, name="tokens")(ids)))


def sequential() -> keras.Sequential:
    return keras.Sequential([keras.Input((None,), dtype="int32"), layers.Embedding(5, 4), layers.Dense(2)])


# Layers and their calls


class NotesScope(layers.Layer):
    def call(self, inputs):
        self.was_symbolic = keras_compat.in_symbolic_scope()
        return inputs


def test_a_call_that_infers_shapes_is_symbolic_and_one_with_values_is_not():
    layer = NotesScope()
    layer.compute_output_spec(keras.KerasTensor((2, 3)))
    assert layer.was_symbolic
    layer(np.ones((2, 3), np.float32))
    assert not layer.was_symbolic


class MasksZeros(layers.Layer):
    def call(self, values):
        rows = ops.multiply(values, 1)
        keras_compat.set_mask(rows, ops.any(ops.not_equal(values, 0), axis=-1))
        return rows


def test_the_next_layer_gets_a_mask_that_was_set():
    values = np.array([[[2.0], [4.0], [0.0]]], np.float32)
    averages = layers.GlobalAveragePooling1D()
    assert ops.convert_to_numpy(averages(MasksZeros()(values))).tolist() == [[3.0]]
    assert ops.convert_to_numpy(averages(ops.convert_to_tensor(values))).tolist() == [[2.0]]


class NotesDtype(layers.Layer):
    def call(self, inputs):
        self.dtype_of_scope = keras_compat.autocast_dtype()
        return inputs


def test_the_dtype_of_the_autocast_scope_is_returned():
    values = np.ones((1, 2), np.float32)
    for policy, expected in (("mixed_bfloat16", "bfloat16"), ("float32", None)):
        layer = NotesDtype(dtype=policy)
        layer(values)
        assert layer.dtype_of_scope == expected
    assert keras_compat.autocast_dtype() is None


def test_all_layers_are_returned_containers_first():
    inner, last = layers.Dense(2), layers.Dense(3)
    wrapper = layers.TimeDistributed(inner)
    model = keras.Sequential([wrapper, last])
    found = keras_compat.all_layers(model)
    assert found[0] is model and {id(each) for each in found} == {id(each) for each in (model, wrapper, inner, last)}
    assert found.index(wrapper) < found.index(inner)
    assert keras_compat.all_layers(last) == [last]


def test_the_flag_of_a_layer_is_set_without_its_contents():
    model = functional()
    head = model.get_layer("head")
    keras_compat.set_own_flag(model, False)
    assert (model.trainable, head.trainable, head.kernel.trainable) == (False, True, True)


def test_a_flag_of_1_can_be_set_to_true_for_the_contents_too():
    model = functional()
    head = model.get_layer("head")
    model.trainable = False
    keras_compat.set_own_flag(model, 1)
    assert (model.trainable, head.trainable) == (True, False)
    model.trainable = True
    assert (head.trainable, head.kernel.trainable) == (True, True)


def test_a_layer_becomes_another_one_in_graphs_and_attributes_until_undone():
    model = functional()
    before = ops.convert_to_numpy(model(IDS))
    old, new = model.get_layer("tokens"), layers.Embedding(5, 4, name="tokens", mask_zero=True)
    new.build()
    rows = np.ones((5, 4), np.float32)
    new.set_weights([rows])
    undo = keras_compat.become(old, new)
    assert model.get_layer("tokens") is old and old.mask_zero
    expected = ops.convert_to_numpy(model.get_layer("head")(rows[IDS]))
    np.testing.assert_array_equal(ops.convert_to_numpy(model(IDS)), expected)
    assert keras.Model(model.input, old.output)(IDS).shape == (2, 3, 4)
    undo()
    assert not old.mask_zero
    np.testing.assert_array_equal(ops.convert_to_numpy(model(IDS)), before)


# Models and their graphs


@pytest.mark.parametrize("make", [functional, sequential])
def test_the_calls_of_a_graph_are_returned_in_order(make):
    model = make()
    found = [node.operation for node in keras_compat.graph_nodes(model)]
    assert [type(each) for each in found] == [layers.InputLayer, layers.Embedding, layers.Dense]
    assert found[1:] == [each for each in model.layers if not isinstance(each, layers.InputLayer)]
    # the tensors are those of the model, whose shapes can be set
    assert keras_compat.graph_nodes(model)[-1].outputs[0] is model.outputs[0]


@pytest.mark.parametrize("make", [lambda: layers.Dense(2), lambda: keras.Sequential([layers.Dense(2)]), keras.Model])
def test_other_layers_have_no_graph(make):
    assert keras_compat.graph_nodes(make()) == []


def test_the_shape_of_a_symbolic_tensor_is_set():
    model = functional()
    keras_compat.set_shape(model.outputs[0], (None, None, 7))
    assert model.output_shape == (None, None, 7)


class TakesSize(layers.Layer):
    def __init__(self, size: int, **kwargs):
        super().__init__(**kwargs)
        self.size = size


def test_a_changed_config_of_arguments_is_saved():
    layer = TakesSize(3)
    keras_compat.config_of_arguments(layer)["size"] = 4
    assert layer.get_config()["size"] == 4
    assert keras_compat.config_of_arguments(object()) == {}


def test_arguments_of_compile_are_the_same_objects():
    def loss(expected, found):
        return ops.mean(ops.abs(expected - found))

    model, optimizer = functional(), keras.optimizers.Adam()
    model.compile(optimizer, loss, jit_compile=False)
    arguments = keras_compat.compile_arguments(model)
    assert arguments["loss"] is loss and arguments["optimizer"] is optimizer and arguments["jit_compile"] is False


# Methods that write or read files


def test_a_refused_method_raises_and_is_pickled_until_it_is_restored(tmp_path):
    model = functional()
    weights = len(model.variables)
    keras_compat.add_refusal(model, "save", "tokens")
    for save in (model.save, pickle.loads(pickle.dumps(model.save))):
        with pytest.raises(NotImplementedError, match=f"save of '{model.name}' is refused while its 'tokens' is"):
            save(tmp_path / "model.keras")
    assert not any(tmp_path.iterdir()) and len(model.variables) == weights
    keras_compat.remove_refusal(model, "save")
    model.save(tmp_path / "model.keras")
    assert keras.models.load_model(tmp_path / "model.keras").count_params() == model.count_params()


def test_a_method_that_the_user_has_set_is_not_removed():
    model = functional()
    model.save = print
    keras_compat.remove_refusal(model, "save")
    assert model.save is print
    keras_compat.remove_refusal(model, "export")


def test_a_refusal_names_both_ways_out():
    with pytest.raises(NotImplementedError, match=r"^Saving is refused.*'tokens'.*load_trainable.*combine_embedding"):
        keras_compat.refuse_files("Saving", "tokens", "path", overwrite=True)


# Optimizers


def built(optimizer, *variables):
    optimizer.build(list(variables))
    return optimizer


def test_variables_of_an_optimizer_have_positions():
    first, second, other = (keras.Variable([1.0]) for _ in range(3))
    optimizer = built(keras.optimizers.Adam(), first, second)
    assert keras_compat.optimizer_variables(optimizer) == [first, second]
    assert [keras_compat.index_in_optimizer(optimizer, each) for each in (first, second, other)] == [0, 1, None]
    assert keras_compat.index_in_optimizer(optimizer, np.ones(1)) is None


@on_tensorflow
def test_an_optimizer_finds_the_variable_of_tensorflow():
    first, second = (keras.Variable([1.0]) for _ in range(2))
    assert keras_compat.index_in_optimizer(built(keras.optimizers.Adam(), first, second), second.value) == 1


def test_slots_are_listed_by_name_in_the_order_of_the_variables():
    variables = [keras.Variable(np.ones(shape, np.float32)) for shape in ((2, 3), (4,))]
    slots = keras_compat.optimizer_slots(built(keras.optimizers.Adam(amsgrad=True), *variables))
    assert set(slots) == {"momentums", "velocities", "velocity_hats"}
    for values in slots.values():
        assert [tuple(each.shape) for each in values] == [(2, 3), (4,)]
    assert keras_compat.optimizer_slots(built(keras.optimizers.SGD(), *variables)).get("momentums", []) == []


def test_variables_excluded_from_weight_decay_are_known():
    kept, excluded = keras.Variable([1.0], name="kept"), keras.Variable([1.0], name="excluded")
    optimizer = keras.optimizers.AdamW()
    optimizer.exclude_from_weight_decay([excluded])
    assert [keras_compat.is_decayed(optimizer, each) for each in (kept, excluded)] == [True, False]


# Graphs of TensorFlow


@on_tensorflow
@pytest.mark.parametrize("jit_compile", [True, False])
def test_xla_is_recognised_in_a_graph_and_in_one_inside_it(jit_compile):
    import tensorflow as tf

    found = []

    def inner(value):
        found.append(keras_compat.is_for_xla(tf.compat.v1.get_default_graph()))
        return value + 1

    def outer(value):
        return tf.cond(value > 0, lambda: inner(value), lambda: inner(value)) + inner(value)

    tf.function(outer, jit_compile=jit_compile)(tf.constant(1.0))
    assert set(found) == {jit_compile}


# Saving


class NotesFolder(layers.Layer):
    found = None

    def save_assets(self, folder):
        NotesFolder.found = Path(folder), keras_compat.assets_folder(Path(folder))
        Path(folder, "file").touch()

    def load_assets(self, folder):
        pass


def test_the_assets_of_a_saved_archive_are_found(tmp_path):
    keras.Sequential([keras.Input((1,)), keras.Sequential([NotesFolder(name="notes")])]).save(tmp_path / "model.keras")
    folder, assets = NotesFolder.found
    assert assets.name == "assets" and assets in folder.parents and "assets" not in assets.parent.parts


def test_the_assets_of_an_unpacked_archive_are_found_and_other_folders_are_not(tmp_path):
    folder = tmp_path / "assets" / "model" / "assets" / "layers" / "tokens"
    assert keras_compat.assets_folder(folder) == folder
    (tmp_path / "config.json").touch()
    assert keras_compat.assets_folder(folder) == tmp_path / "assets"
    temporary = Path(tempfile.gettempdir()) / "model" / "assets"
    assert keras_compat.assets_folder(temporary / "layers") == temporary


# Exports


def called_from(module: str, function: str = "convert", **arguments: str) -> bool:
    """Call from a function of another module, which tests/models/test_export_formats.py does with the real ones."""
    space = {"__name__": module, "inner": keras_compat.is_called_by_exporter}
    exec(f"def {function}({', '.join(arguments)}):\n    return inner()", space)
    return space[function](**arguments)


@pytest.mark.parametrize("module", ["tensorflow.lite.python.lite", "tf2onnx.convert"])
def test_converters_are_recognised_on_the_stack(module):
    assert called_from(module)


@pytest.mark.parametrize(
    ("module", "format_", "expected"),
    [
        ("keras.src.models.model", "onnx", True),
        ("keras.src.models.model", "litert", True),
        ("keras.src.models.model", "tf_saved_model", False),
        ("another.module", "onnx", False),
    ],
)
def test_exports_of_fixed_shapes_are_recognised_by_their_format(module, format_, expected):
    assert called_from(module, "export", format=format_) == expected


def test_other_callers_are_no_exporters():
    assert not keras_compat.is_called_by_exporter()
    assert not called_from("tensorflow.python.eager.def_function")


# The module


def functions() -> dict[str, str]:
    """The docstrings of the functions that another module can call, in one line each."""
    members = inspect.getmembers(keras_compat, inspect.isfunction)
    own = {name: each for name, each in members if each.__module__ == keras_compat.__name__}
    return {name: " ".join((each.__doc__ or "").split()) for name, each in own.items() if not name.startswith("_")}


# it raises an error, and touches nothing of Keras
@pytest.mark.parametrize("name", sorted(functions().keys() - {"refuse_files"}))
def test_a_docstring_states_the_versions_and_what_to_do_when_it_breaks(name):
    text = functions()[name]
    assert "When it breaks: " in text
    assert any(each in text for each in ("Keras 3.6 and 3.15.1", "TensorFlow 2.18 and 2.21", "TensorFlow 2.21")), text


def test_the_module_imports_the_standard_library_alone():
    tree = ast.parse(Path(keras_compat.__file__).read_text(encoding="utf-8"))
    names = [each.module for each in tree.body if isinstance(each, ast.ImportFrom)]
    names += [alias.name for each in tree.body if isinstance(each, ast.Import) for alias in each.names]
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
