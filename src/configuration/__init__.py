"""From Hydra's configuration to objects, every value checked."""
