"""The training methods as LightningModules."""

from tartan.methods.continued_pretraining import ContinuedPretraining
from tartan.methods.fine_tuning import FineTuning
from tartan.methods.meta_tartan import MetaTartan
from tartan.methods.mt_tartan import MTTartan

__all__ = ["ContinuedPretraining", "FineTuning", "MTTartan", "MetaTartan"]
