"""`python -m src.run`: the command `tartan run` in a checkout."""

from tartan.runs.command import command

if __name__ == "__main__":
    command()
