"""Tests of src/tartan/build_corpus."""
