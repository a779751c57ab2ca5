"""All scenarios by name, in the order of a run. To add one, add it to SCENARIOS of its module."""

from benchmarks.speed.plan import Scenario
from benchmarks.speed.scenarios import files, gradients, growth, lookup, reversible, sharing, training, variants

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for module in (lookup, training, variants, gradients, reversible, growth, sharing, files)
    for scenario in module.SCENARIOS
}
