"""A pretrained model goes in; it comes out with one of its embeddings split, so that chosen and new tokens alone train.

`choosing` says which layer that is, `splitting` makes the split layer of it, `placing` puts one in the other's place,
and `owners` lets what holds it be saved and loaded; `adapters` reads the small table that was trained on a base.
"""

from splitembed.adapting.adapters import load_trainable
from splitembed.adapting.splitting import combine_embedding, split_embedding

__all__ = ["combine_embedding", "load_trainable", "split_embedding"]
