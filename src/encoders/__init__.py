"""Where a pre-trained (or random) body, its tokenizer and its masked-LM head come from."""
