"""Loads and saves encoders: pre-trained or random bodies with their tokenizers and heads."""
