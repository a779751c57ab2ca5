"""Training contestants compute the same as NumPy, and move frozen rows or not, as expected."""

import importlib
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from benchmarks.speed.checks import SMALL, check_step, frozen_rows_moved
from benchmarks.speed.scenarios import SCENARIOS

# `make test-all` runs it: it takes long, and tests the benchmarks and not the package.
pytestmark = pytest.mark.slow

TRAINING_TASKS = ("forward", "pool", "step", "fit")
ENTRIES = {
    f"{entry.contestant}-{'-'.join(map(str, entry.options.values()))}": entry
    for scenario in SCENARIOS.values()
    for entry in scenario.entries
    # Lookups that stop after a stage train nothing. For rounded rows see test_variants.py, for language models
    # test_reversible.py, and for gradient control test_gradients.py.
    if entry.task in TRAINING_TASKS and not {"dtype", "upto"} & entry.options.keys()
    if not entry.contestant.startswith(("reversible.", "gradient_control."))
}
# Whether weight decay, or training itself, moves frozen rows.
LEAKS = {
    "masks.MaskWholeTable": True,
    "masks.MaskAfterGather": True,
    "filtered.Filtered": True,
    "torch_embedding.TorchEmbedding": True,
    "keras_embedding.KerasEmbedding": True,
    "floor.Floor": False,
    "ours.Ours": False,
    "bags.Combiner": False,
    "bags.SparseLookup": False,
    "torch_bags.TorchBag": True,
    "where.Where": False,
    "concat.Concat": False,
    "concat.ConcatDistinct": False,
    "peft_tokens.PeftTokens": False,
}


@pytest.fixture(scope="module")
def problem(tmp_path_factory):
    return SMALL.make(tmp_path_factory.mktemp("problem"))


@pytest.fixture(params=ENTRIES.values(), ids=ENTRIES)
def entry(request):
    missing = [name for name in request.param.needs if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed; `make bench` installs it")
    return request.param


def kind_of(entry):
    module, name = entry.contestant.split(".")
    return getattr(importlib.import_module(f"benchmarks.speed.contestants.{module}"), name)


def test_contestant_agrees_with_numpy(entry, problem, tmp_path):
    make = partial(kind_of(entry), **entry.options)
    contestant = make(problem)
    contestant.take_first_steps()
    problem.check(contestant.answer())
    contestant.checkpoint(tmp_path / "checkpoint")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) > problem.head.nbytes
    check_step(make)
    assert frozen_rows_moved(make) == (LEAKS[entry.contestant] and contestant.trains)


def test_forward_passes_and_steps_of_fit_run(problem):
    ours = ENTRIES["ours.Ours-"]
    kind_of(ours)(problem, "forward").run(problem.sizes.num_batches + 1)
    contestant = kind_of(ours)(problem, "fit")
    before = contestant.rows(problem.trainable_ids[None])
    contestant.run(problem.sizes.num_batches + 1)
    assert int(contestant.model.optimizer.iterations.numpy()) == problem.sizes.num_batches + 1
    assert np.any(contestant.rows(problem.trainable_ids[None]) != before)
