"""Exports a trained classifier to ONNX: `python -m src.export`."""
