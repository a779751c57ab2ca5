"""New tokens of a pretrained model: the ids that its tokenizer will give them, and their rows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from splitembed.arrays import NO_ROW
from splitembed.errors import NewTokenWarning, SplitError, shortened
from splitembed.initializers.by_name import Initializer, Seed
from splitembed.split.like import start_like
from splitembed.split.table import SplitTable


@dataclass(frozen=True)
class NewTokens:
    """New tokens in the order of their ids.

    Args:
        ids: ascending. Those below `num_rows` are reserved rows of the table, which start again; the others follow it.
        names: a name for each; None where only their number is known.
        num_rows: the rows of the model's table.
        keeps_names: whether the split keeps the names of all tokens.
    """

    ids: list[int]
    names: list[str] | None
    num_rows: int
    keeps_names: bool

    @property
    def reserved(self) -> list[int]:
        """The ids that have a row already."""
        return [each for each in self.ids if each < self.num_rows]

    def rows_of(
        self,
        table: SplitTable,
        chosen: NDArray[np.int64],
        initializer: Initializer,
        seed: Seed,
        like: Mapping[int, NDArray[np.int64]],
    ) -> SplitTable:
        """Return a table of frozen rows as a split in which chosen and new tokens train.

        Args:
            table: the model's table, `num_rows` frozen rows.
            chosen: ids that train from their present row.
            initializer: the start of new rows, as in `build_split`.
            seed: for the initializer.
            like: ids of the table's tokens for each new one that starts as the mean of their rows.
        """
        reserved = self.reserved
        num_added = len(self.ids) - len(reserved)
        names = self.names[len(reserved) :] if self.names is not None and self.keeps_names else num_added
        split = table.grow(names, oov_initializer=initializer, seed=seed).thaw(
            np.union1d(chosen, np.array(reserved, int))
        )
        if not reserved:
            return start_like(split, like)
        # one call makes the rows of all new tokens, so that no two of them are drawn alike
        unnamed = table.with_parts(vocabulary=None)
        made = unnamed.grow(len(self.ids), oov_initializer=initializer, seed=seed).trainable
        rows = split.trainable.copy()
        rows[~split.remap[self.ids]] = made
        return start_like(split.with_trainable(rows), like)

    def rows_before(self, split: SplitTable) -> NDArray[np.int64]:
        """Return for each trainable row of the split its row in the model's table; -1 for new ones."""
        rows = np.full(split.num_trainable, NO_ROW)
        chosen = np.setdiff1d(split.trainable_ids, self.ids)
        rows[~split.remap[chosen]] = chosen
        return rows

    def described(self) -> str:
        """Return the tokens with their ids, for a message."""
        if self.names is None:
            return f"ids {shortened(self.ids, show=str)}"
        return shortened(list(zip(self.names, self.ids, strict=True)), show=lambda each: f"{each[0]!r} (id {each[1]})")


def checked(given: Any) -> Mapping[str, int] | list[str] | int:
    """Return `new_tokens` as a dict of ids, a list of names or a number.

    Raises:
        SplitError: anything else.
    """
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and given >= 0:
        return int(given)
    names = [given] if isinstance(given, str) else given
    is_named = isinstance(names, (list, tuple, Mapping)) and all(isinstance(each, str) and each for each in names)
    ids = list(names.values()) if isinstance(names, Mapping) else []
    if not is_named or not all(isinstance(each, (int, np.integer)) and each >= 0 and each is not True for each in ids):
        raise SplitError(f"`new_tokens` must be a number, a list of names, or a dict name -> id. Received: {given!r}.")
    if len(set(names)) != len(names) or len(set(ids)) != len(ids):
        raise SplitError(f"`new_tokens` must be different names and ids. Received: {given!r}.")
    if isinstance(names, Mapping):
        return {name: int(names[name]) for name in sorted(names, key=lambda name: names[name])}
    return list(names)


def refuse_gaps(ids: Sequence[int], names: Sequence[str], num_rows: int) -> None:
    """Raise if ids after the table do not follow it one by one.

    Raises:
        SplitError: naming the id and the number of rows.
    """
    added = [(each, name) for each, name in zip(ids, names, strict=True) if each >= num_rows]
    for expected, (found, name) in enumerate(added, num_rows):
        if found != expected:
            raise SplitError(
                f"The new token {name!r} has the id {found}, but the model's table has {num_rows} rows and the next "
                f"new row has the id {expected}. Name the tokens of the ids between them too, or renumber the tokens."
            )


def warn_of_unknown(new: NewTokens, tokenizers: Sequence[Any], indices: Sequence[Mapping[str, int]]) -> None:
    """Warn about tokenizers of a model that do not produce the ids of new tokens.

    Args:
        new: the new tokens.
        tokenizers: those of the model and of the models around it.
        indices: token -> id of each.
    """
    for tokenizer, index in zip(tokenizers, indices, strict=True):
        if new.names is None:
            knows = not new.ids or new.ids[-1] < len(index)
        else:
            knows = all(index.get(name) == each for name, each in zip(new.names, new.ids, strict=True))
        if not knows:
            warnings.warn(
                f"The model's {type(tokenizer).__name__} does not know the new tokens {new.described()}: `generate` on "
                f"strings cannot read them, and fails or leaves them out where the model writes one. Make a tokenizer "
                f"with them at these ids, and a preprocessor and a task with that: see 'New tokens in the "
                f"tokenizer' in the docstring of split_embedding.",
                NewTokenWarning,
                stacklevel=4,
            )


def warn_of_heads(new: NewTokens, layers: Sequence[Any]) -> None:
    """Warn about layers that predict one of the model's former tokens, and never a new one.

    Args:
        new: the new tokens.
        layers: all layers of the model.
    """
    if not new.ids or new.ids[-1] < new.num_rows:
        return
    for layer in layers:
        if getattr(layer, "units", None) == new.num_rows and type(layer).__name__ == "Dense":
            warnings.warn(
                f"The model reads the new tokens and never predicts them: its layer {layer.name!r} has an output for "
                f"each of the former {new.num_rows} tokens. Use a SplitReversibleEmbedding for the logits, or replace "
                f"the layer.",
                NewTokenWarning,
                stacklevel=4,
            )
