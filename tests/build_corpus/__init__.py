"""Tests of src/build_corpus."""
