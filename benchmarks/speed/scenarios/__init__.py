"""Every scenario by name, in the order in which they run; to add one, add it to its module's SCENARIOS."""

from benchmarks.speed.plan import Scenario
from benchmarks.speed.scenarios import files, gradients, growth, lookup, reversible, sharing, training, variants

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for module in (lookup, training, variants, gradients, reversible, growth, sharing, files)
    for scenario in module.SCENARIOS
}
