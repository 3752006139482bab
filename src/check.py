"""`python -m src.check`: the command `tartan check` in a checkout."""

from tartan.check.main import command

if __name__ == "__main__":
    command()
