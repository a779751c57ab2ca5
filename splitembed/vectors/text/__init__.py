"""Read GloVe text, word2vec text and fastText .vec."""
