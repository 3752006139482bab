"""LightningModules of the methods, and the stages that chain them."""
