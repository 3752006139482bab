"""`python -m src.run`: the command `tartan run` in a checkout."""

from tartan.experiment.main import command

if __name__ == "__main__":
    command()
