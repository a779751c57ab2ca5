"""The results of a comparison as a table, as JSON and as a plot."""

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.accuracy.classifier import Settings
from benchmarks.accuracy.contestants import CONTESTANTS, DROPOUT_RATES, Contestant, Run
from splitembed.coverage import CoverageReport

MEGABYTE = 1e6


class Comparison(NamedTuple):
    """One corpus: its name, the coverage of its training documents, and the runs of each contestant by name."""

    corpus: str
    coverage: CoverageReport
    runs: dict[str, list[Run]]

    @property
    def oov_type_share(self) -> float:
        """Return the share of the vocabulary's tokens that are OOV."""
        return 1 - self.coverage.type_share

    @property
    def oov_running_share(self) -> float | None:
        """Return the share of OOV tokens in the text of the training documents."""
        return None if self.coverage.running_share is None else 1 - self.coverage.running_share


class Summary(NamedTuple):
    """One line of a table: accuracies in percent, times in milliseconds, sizes in megabytes (1e6 bytes)."""

    title: str
    num_trainable_rows: int
    accuracy: float
    spread: float | None
    validation: float
    step: float
    peak: float | None
    checkpoint: float


def summarize(contestant: Contestant, runs: list[Run]) -> Summary:
    """Return the mean over seeds. The spread is the standard deviation, or None for a single seed."""
    accuracies = [100 * run.training.test_accuracy for run in runs]
    return Summary(
        contestant.title,
        runs[0].num_trainable_rows,
        statistics.mean(accuracies),
        statistics.stdev(accuracies) if len(runs) > 1 else None,
        100 * _validation(runs),
        1e3 * statistics.median(run.training.step_seconds for run in runs),
        None if runs[0].peak_bytes is None else runs[0].peak_bytes / MEGABYTE,
        runs[0].checkpoint_bytes / MEGABYTE,
    )


def summaries(comparison: Comparison) -> list[Summary]:
    """Return the lines of a table, in the order of the contestants."""
    present = [contestant for contestant in CONTESTANTS if contestant.name in comparison.runs]
    return [summarize(contestant, comparison.runs[contestant.name]) for contestant in present]


def as_markdown(comparison: Comparison) -> str:
    """Return the table of a corpus, below a line with its OOV shares."""
    coverage = comparison.coverage
    heading = (
        f"**{comparison.corpus}**: {coverage.num_tokens:,} types, {100 * comparison.oov_type_share:.1f} % of them OOV"
    )
    if comparison.oov_running_share is not None:
        heading += f"; {100 * comparison.oov_running_share:.1f} % of the running tokens OOV"
    columns = ("", "trainable rows", "test, %", "validation, %", "step, ms", "peak memory, MB", "checkpoint, MB")
    lines = [columns, ("---", *["--:"] * (len(columns) - 1)), *map(_cells, summaries(comparison))]
    return "\n".join([f"{heading}.", "", *("| " + " | ".join(line) + " |" for line in lines)])


def _cells(line: Summary) -> tuple[str, ...]:
    return (
        line.title,
        f"{line.num_trainable_rows:,}",
        _accuracy(line),
        f"{line.validation:.1f}",
        f"{line.step:.1f}",
        "not measured" if line.peak is None else f"{line.peak:.0f}",
        f"{line.checkpoint:.2f}",
    )


def _accuracy(line: Summary) -> str:
    return f"{line.accuracy:.1f}" + ("" if line.spread is None else f" ± {line.spread:.1f}")


def legend(settings: Settings) -> str:
    """Return the explanation of the tables' columns."""
    return (
        "Test: accuracy, mean and standard deviation over the seeds, after the best validation epoch. "
        "Validation: mean accuracy of that epoch on a tenth of the training documents. Step: "
        f"median training step on {settings.batch_size} documents of up to {settings.max_tokens} tokens. Peak memory: "
        "anonymous memory above that of a process with TensorFlow and the corpus. Checkpoint: the weights file, with "
        "the optimizer's slots."
    )


def as_line(contestant: Contestant, runs: list[Run]) -> str:
    """Return the result of a contestant as one line, for the progress output."""
    line, training = summarize(contestant, runs), [run.training for run in runs]
    epochs = ", ".join(f"{each.best_epoch}/{each.num_epochs}" for each in training)
    seconds = sum(each.total_seconds for each in training)
    return f"{line.title}: {_accuracy(line)} %, best epochs {epochs}, {seconds:.0f} s"


def chosen_dropout(comparison: Comparison) -> tuple[float, str]:
    """Return the `trainable_dropout` with the best validation accuracy, 0 included, and the contestant's name."""
    candidates = [(0.0, "split"), *((rate, f"split-dropout-{rate}") for rate in DROPOUT_RATES)]
    return max(candidates, key=lambda candidate: _validation(comparison.runs[candidate[1]]))


def _validation(runs: list[Run]) -> float:
    return statistics.mean(run.training.validation_accuracy for run in runs)


def gains(comparison: Comparison) -> str:
    """Return the gain of each choice of trainable rows, and of dropout, in points of test accuracy."""

    def accuracy(name: str) -> float:
        return 100 * statistics.mean(run.training.test_accuracy for run in comparison.runs[name])

    rate, chosen = chosen_dropout(comparison)
    pairs = (
        ("split against the better all-frozen model", "split", max("frozen-zero", "frozen-random", key=accuracy)),
        (f"trainable_dropout={rate:g}, selected on validation data, against split", chosen, "split"),
        (
            "trainable_dropout=0.8, selected after the test results were known, against split",
            "split-dropout-0.8",
            "split",
        ),
        ("min_count=2 and extend_vocabulary against split", "split-min-2-extended", "split"),
        ("min_count=5 against split", "split-min-5", "split"),
        ("extend_vocabulary in addition to min_count=5", "split-min-5-extended", "split-min-5"),
        ("train_most_frequent=10_000 against split", "split-10000", "split"),
        ("train_most_frequent=10_000 against all trainable", "split-10000", "all-trainable"),
        ("min_count=3 in addition to train_most_frequent=10_000", "split-10000-min-3", "split-10000"),
        ("min_count=3 and extend_vocabulary in addition to that", "split-10000-min-3-extended", "split-10000"),
    )
    lines = (f"- {what}: {_points(accuracy(name) - accuracy(against))}" for what, name, against in pairs)
    return "\n".join([f"{comparison.corpus}, points of test accuracy:", "", *lines])


def _points(difference: float) -> str:
    # Adding 0.0 turns -0.0 into 0.0.
    return f"{round(difference, 1) + 0.0:+.1f}"


def as_json(comparisons: Iterable[Comparison], settings: Settings, versions: dict[str, str]) -> str:
    """Return all measurements of each run as JSON: shares, seconds and bytes."""
    corpora = {
        comparison.corpus: {
            "num_types": comparison.coverage.num_tokens,
            "oov_type_share": comparison.oov_type_share,
            "oov_running_share": comparison.oov_running_share,
            "runs": {name: [_plain(run) for run in runs] for name, runs in comparison.runs.items()},
        }
        for comparison in comparisons
    }
    return json.dumps({"settings": settings._asdict(), "versions": versions, "corpora": corpora}, indent=2) + "\n"


def _plain(run: Run) -> dict[str, Any]:
    fields = run._asdict()
    return {**fields, **fields.pop("training")._asdict()}


def _by_rows_only(comparison: Comparison) -> list[Summary]:
    """Return the lines of contestants that only differ in the choice of trainable rows."""
    alike = [each for each in CONTESTANTS if not (each.trainable_dropout or each.extends)]
    return [summarize(each, comparison.runs[each.name]) for each in alike if each.name in comparison.runs]


def plot(comparisons: Iterable[Comparison], path: Path) -> None:
    """Draw test accuracy against trainable rows, one line for each corpus, as a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    for comparison in comparisons:
        lines = sorted(_by_rows_only(comparison), key=lambda line: line.num_trainable_rows)
        axes.errorbar(
            [line.num_trainable_rows for line in lines],
            [line.accuracy for line in lines],
            yerr=[line.spread or 0.0 for line in lines],
            marker="o",
            capsize=3,
            label=comparison.corpus,
        )
    axes.set(xlabel="trainable rows", ylabel="test accuracy, %", title="Accuracy by number of trainable rows")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
