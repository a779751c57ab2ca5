"""Rows and masks with labels, such as those of a pandas DataFrame or Series: aligned by them, or refused.

pandas is not imported: an object with `iloc` and an `index` has labels. An index 0, 1, 2, ... only numbers the rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from splitembed.errors import VocabularyError, shortened


def labels_of(data: Any) -> list[Any] | None:
    """Return the labels of rows, integers as decimal digits; None if there are none, or if they number the rows.

    >>> labels_of([[1.0], [2.0]]) is None
    True
    """
    if not hasattr(data, "iloc") or not hasattr(data, "index"):
        return None
    labels = list(data.index)
    if labels == list(range(len(labels))):
        return None
    return [str(int(label)) if isinstance(label, (int, np.integer)) else label for label in labels]


def align_rows(name: str, rows: Any, tokens: Sequence[str] | None) -> Any:
    """Return rows in the order of tokens, by their labels; rows without labels are unchanged.

    Args:
        name: of the argument, for messages.
        rows: a matrix, or a pandas DataFrame.
        tokens: the expected labels in order; None for the numbers of the rows.

    Raises:
        VocabularyError: labels are missing, duplicate, or not among the tokens.
    """
    labels = labels_of(rows)
    if labels is None:
        return rows
    expected = list(map(str, range(len(labels)))) if tokens is None else list(tokens)
    if labels == expected:
        return rows.to_numpy()
    number_of = {label: number for number, label in enumerate(labels)}
    missing = [token for token in expected if token not in number_of]
    unknown = set(number_of).difference(expected)
    if len(number_of) == len(labels) and not missing and not unknown:
        return rows.to_numpy()[[number_of[token] for token in expected]]
    if len(number_of) < len(labels):
        found = f"{len(labels) - len(number_of)} duplicates"
    elif missing:
        found = f"none for {shortened(missing)}"
    else:
        found = f"{shortened([label for label in labels if label in unknown])}, which is no token"
    what = "ids, as there is no `vocabulary`" if tokens is None else "tokens"
    raise VocabularyError(
        f"The labels of `{name}` must be the {what}, each once. Received: {found}. Correct the labels, or pass "
        "to_numpy() if row i belongs to id i."
    )


def refuse_labels(name: str, rows: Any) -> None:
    """Refuse labelled rows where there are no tokens to align them with.

    Raises:
        VocabularyError: the rows have labels.
    """
    labels = labels_of(rows)
    if labels is not None:
        raise VocabularyError(
            f"`{name}` must be without labels, as its rows are taken in their order. Received: rows labelled "
            f"{shortened(labels)}. Put them in order, and pass to_numpy()."
        )


def labels_of_mask(mask: Any) -> list[Any] | None:
    """Return the labels that a labelled boolean mask selects, integers as ids; None for anything else."""
    if getattr(getattr(mask, "dtype", None), "kind", "") != "b" or labels_of(mask) is None:
        return None
    return [label for label, is_chosen in zip(mask.index, np.asarray(mask), strict=True) if is_chosen]
