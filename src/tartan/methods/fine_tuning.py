"""Fine-tuning on the end task alone, the last stage of every baseline."""

from tartan.methods.module import TaskMixing


class FineTuning(TaskMixing):
    """Trains body and end-task head on the labelled examples, by default at one rate."""

    trains_end_task = True
    trains_auxiliaries = False
    stage_name = "finetune"
    usual_head_lr = None
