"""Encoders: pre-trained or random bodies with their tokenizers and heads."""
