"""The embedded sample: real pretrained vectors and real texts with scores, available offline."""

from splitembed.data.sample import sample_reviews, sample_vectors_path

__all__ = ["sample_reviews", "sample_vectors_path"]
