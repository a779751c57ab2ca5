"""Random histories of a split, compared with a dense NumPy model of the same operations."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from splitembed import SplitTable
from splitembed.errors import NoMatchWarning, SplitError
from splitembed.split.thaw_freeze import carried_rows
from splitembed.tables import open_frozen, write_frozen

DIM = 3
# More than the largest vocabulary of a history.
WORDS = [f"w{number}" for number in range(12)]
ODD_VALUES = [np.nan, np.inf, -np.inf, -0.0, 1e-45, np.finfo(np.float32).max]


class Cell:
    """The row of one or several tokens."""

    def __init__(self, row, trains):
        self.row, self.trains = np.array(row, np.float32), trains


def random_rows(data, num_rows, *, odd=False):
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    rows = generator.normal(size=(num_rows, DIM)).astype(np.float32)
    if odd:
        is_odd = generator.random(rows.shape) < 0.1
        rows[is_odd] = generator.choice(np.array(ODD_VALUES, np.float32), np.count_nonzero(is_odd))
    return rows


def start_rows(shape, dtype):
    """An initializer with known, distinct rows."""
    return np.arange(1, 1 + np.prod(shape)).reshape(shape) / 64


class Life(RuleBasedStateMachine):
    """`self.cells` holds the row of each id, `self.trained` the trainable rows in their order."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.num_saved = 0
        # All splits so far with their rows, which must not change.
        self.past = []

    def teardown(self):
        for split, rows in self.past:
            assert split.combine().tobytes() == rows
        self.folder.cleanup()

    def become(self, split, new_ids=None):
        """Continue with a new split, after checking its mapping of trainable rows."""
        before, used = [id(cell) for cell in self.trained_before], {id(cell) for cell in self.cells}
        expected = [before.index(id(cell)) if id(cell) in before and id(cell) in used else -1 for cell in self.trained]
        assert carried_rows(self.split, split, new_ids).tolist() == expected
        self.split = split
        self.remember()

    def remember(self):
        self.trained_before = list(self.trained)
        self.past.append((self.split, self.split.combine().tobytes()))

    @initialize(
        data=st.data(),
        kind=st.sampled_from(["own", "table", "words that share rows", "float16", "bfloat16", "int8"]),
        has_strings=st.booleans(),
        has_padding=st.booleans(),
    )
    def start(self, data, kind, has_strings, has_padding):
        num_frozen, num_trainable = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 3))
        frozen = random_rows(data, num_frozen, odd=kind in ("own", "table"))
        frozen[-1] = 0
        rows = st.integers(-num_trainable, num_frozen - 1)
        remap = data.draw(st.lists(rows, min_size=1, max_size=7), "remap")
        self.padding = data.draw(st.integers(0, len(remap) - 1), "padding") if has_padding else None
        if has_padding:
            remap[self.padding] = num_frozen - 1
        self.names = data.draw(st.permutations(WORDS))[: len(remap)] if has_strings else None
        parts = {"vocabulary": self.names, "padding": self.padding}
        trainable = random_rows(data, num_trainable, odd=True)
        if kind in ("table", "words that share rows"):
            parts["table"] = self.table(frozen, share=kind != "table")
            frozen = parts["table"].vectors
        self.split = SplitTable(frozen, remap, trainable, **parts)
        if kind in ("float16", "bfloat16", "int8"):
            self.split = self.split.with_frozen_dtype(kind)
        self.trained = [Cell(row, True) for row in trainable]
        dense = self.split.combine()
        self.cells = [self.trained[~row] if row < 0 else Cell(dense[i], False) for i, row in enumerate(remap)]
        self.remember()

    def table(self, frozen, share):
        path = Path(self.folder.name) / "shared.h5"
        words = [*WORDS[: len(frozen) - 1], ""]
        row_of = np.arange(len(frozen))
        if share:
            words += WORDS[len(frozen) :][:3]
            row_of = np.append(row_of, [0] * (len(words) - len(frozen)))
        write_frozen(path, frozen, words=words, zero_row=len(frozen) - 1, row_of=row_of if share else None)
        return open_frozen(path)

    def some_ids(self, data, *, also_padding=False):
        ids = [i for i in range(len(self.cells)) if also_padding or i != self.padding]
        return data.draw(st.lists(st.sampled_from(ids), max_size=4) if ids else st.just([]), "ids")

    def as_names(self, data, ids):
        """Return the same ids, sometimes as tokens or as a mask."""
        how = data.draw(st.sampled_from(["ids", "mask", "tokens"]), "how")
        if how == "mask":
            return np.isin(np.arange(len(self.cells)), ids)
        return ids if how == "ids" or self.names is None else [self.names[i] for i in ids]

    def drop_unused(self):
        self.trained = [cell for cell in self.trained if any(cell is used for used in self.cells)]

    @rule(data=st.data())
    def train(self, data):
        for cell, row in zip(self.trained, random_rows(data, len(self.trained), odd=True), strict=True):
            cell.row = row
        rows = [cell.row for cell in self.trained]
        self.become(self.split.with_trainable(np.array(rows, np.float32).reshape(-1, DIM)))

    @rule(data=st.data())
    def thaw(self, data):
        ids = self.some_ids(data)
        split = self.split.thaw(self.as_names(data, ids))
        for i in sorted(set(ids)):
            if not self.cells[i].trains:
                self.cells[i] = Cell(self.cells[i].row, True)
                self.trained.append(self.cells[i])
        assert split.frozen is self.split.frozen and split.table is self.split.table
        self.become(split)

    @rule(data=st.data())
    def freeze(self, data):
        ids = self.some_ids(data, also_padding=True)
        try:
            split = self.split.freeze(self.as_names(data, ids))
        # tests/split/test_thaw_freeze.py tests which rows are refused.
        except SplitError:
            if self.split.frozen_dtype == "float32":
                raise
            return
        if any(self.cells[i].trains for i in ids):
            self.cells = [
                Cell(cell.row, False) if i in ids and cell.trains else cell for i, cell in enumerate(self.cells)
            ]
            self.drop_unused()
            assert split.table is None and split.num_frozen <= len(self.cells)
        self.become(split)

    @precondition(lambda self: len(self.cells) > 1)
    @rule(data=st.data())
    def shrink(self, data):
        ids = set(self.some_ids(data, also_padding=True))
        kept = [i for i in range(len(self.cells)) if i not in ids]
        if not kept:
            return
        split = self.split.shrink(self.as_names(data, sorted(ids)), drop_reserved=True)
        new_ids = split.id_mapping
        assert new_ids.tolist() == [kept.index(i) if i in kept else -1 for i in range(len(self.cells))]
        assert split.frozen is self.split.frozen and split.table is self.split.table
        self.cells = [self.cells[i] for i in kept]
        self.names = self.names and [self.names[i] for i in kept]
        self.padding = kept.index(self.padding) if self.padding in kept else None
        if ids:
            self.drop_unused()
        self.become(split, new_ids)

    @rule(data=st.data())
    def compact(self, data):
        split = self.split.compact()
        self.drop_unused()
        assert split.table is None and (split.num_frozen, split.num_trainable) == (
            len(set(split.remap[split.remap >= 0])),
            len(self.trained),
        )
        self.become(split)

    def a_source(self, data):
        """Draw vectors of some words (decimal digits for ids without strings), and the row of each."""
        names = WORDS if self.names is not None else [str(number) for number in range(len(self.cells) + 3)]
        known = data.draw(st.lists(st.sampled_from(names), unique=True), "known")
        rows = random_rows(data, len(known))
        return dict(zip(known, rows, strict=True))

    @rule(data=st.data(), from_elsewhere=st.booleans(), trains=st.booleans())
    def grow(self, data, from_elsewhere, trains):
        first = len(self.cells)
        free = [word for word in WORDS if word not in (self.names or ())]
        tokens = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=3) if free else st.just([]), "tokens")
        names = tokens if self.names is not None else [str(first + place) for place in range(len(tokens))]
        source = self.a_source(data) if from_elsewhere else None
        if from_elsewhere and self.split.frozen_dtype != "float32":
            # Every precision holds these rows exactly.
            source = {word: np.sign(row) for word, row in source.items()}
        known = source
        if source is None:
            known = {} if self.names is None else self.words_of_table()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoMatchWarning)
            split = self.split.grow(
                tokens if self.names is not None else len(tokens),
                source,
                oov_initializer=start_rows,
                trainable_tokens=range(first, first + len(tokens)) if trains else (),
            )
        started = iter(start_rows((sum(name not in known for name in names), DIM), None))
        new = [Cell(known[name], trains) if name in known else Cell(next(started), True) for name in names]
        self.cells += new
        self.trained += [cell for cell in new if cell.trains]
        self.names = self.names and [*self.names, *tokens]
        if source is None or all(cell.trains for cell in new):
            assert split.frozen is self.split.frozen and split.table is self.split.table
        self.become(split)

    def words_of_table(self):
        """Return the row of each word of the split's table."""
        table = self.split.table
        if table is None or table.words is None:
            return {}
        rows = range(table.num_frozen) if table.row_of is None else table.row_of.tolist()
        return {word: table.take(row) for word, row in zip(table.words, rows, strict=True) if word}

    @rule(
        data=st.data(),
        missing=st.sampled_from(["train", "keep"]),
        newly_found=st.sampled_from(["keep", "freeze"]),
        is_table=st.booleans(),
    )
    def with_frozen(self, data, missing, newly_found, is_table):
        source = self.a_source(data)
        vocabulary = None if self.names is not None else self.split.num_tokens
        names = self.names or [str(number) for number in range(self.split.num_tokens)]
        old_words = self.words_of_table()
        given = self.as_table(source) if is_table else source
        split = self.split.with_frozen(given, missing=missing, newly_found=newly_found, vocabulary=vocabulary)
        change = split.vector_change
        assert change.missing == tuple(
            name
            for i, name in enumerate(names)
            if not self.cells[i].trains and name not in source and i != self.padding
        )
        newly_found_ids = [
            i for i, name in enumerate(names) if self.cells[i].trains and name in source and name not in old_words
        ]
        assert change.newly_found == tuple(names[i] for i in newly_found_ids)
        for i, name in enumerate(names):
            if i == self.padding:
                continue
            if name in source and (not self.cells[i].trains or (newly_found == "freeze" and i in newly_found_ids)):
                self.cells[i] = Cell(source[name], False)
            elif not self.cells[i].trains and missing == "train":
                self.cells[i] = Cell(self.cells[i].row, True)
                self.trained.append(self.cells[i])
        self.drop_unused()
        if is_table and (missing == "train" or not change.missing):
            assert split.frozen.base is not None and split.table.path == given
        self.become(split)

    def as_table(self, source):
        path = Path(self.folder.name) / f"source-{len(self.past)}.h5"
        rows = np.array([*source.values(), np.zeros(DIM)], np.float32)
        write_frozen(path, rows, words=[*source, ""], zero_row=len(source))
        return path

    @rule(verify=st.booleans())
    def save_and_open(self, verify):
        self.num_saved += 1
        folder = Path(self.folder.name) / f"saved-{self.num_saved}"
        self.split.save(folder)
        self.become(SplitTable.open(folder, verify=verify))

    @invariant()
    def is_what_the_model_says(self):
        split = self.split
        assert split.combine().tobytes() == b"".join(cell.row.tobytes() for cell in self.cells)
        assert split.trainable_ids.tolist() == [i for i, cell in enumerate(self.cells) if cell.trains]
        assert split.trainable.tobytes() == b"".join(cell.row.tobytes() for cell in self.trained)
        assert (None if split.vocabulary is None else list(split.vocabulary)) == self.names
        assert split.padding == self.padding


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=100, stateful_step_count=15)
