"""Builds objects from Hydra's configuration, with every value checked."""
