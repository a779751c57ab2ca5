"""word2vec binary."""
