"""The Keras layers over a split, and how they are saved and loaded."""
