"""Private names of Keras, TensorFlow and CPython, each in one function: nothing else in the package touches them.

Each docstring says in which versions the name was read, why no public name does, and what to do when it breaks. Keras
and TensorFlow are imported inside the functions, so that the NumPy core can use this module.
"""

# Layers and their calls

# Models and their graphs

# Optimizers

# Graphs and gradients of TensorFlow

# Exports
