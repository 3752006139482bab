"""`python -m src.compare`: the command `tartan compare` in a checkout."""

from tartan.compare.main import command

if __name__ == "__main__":
    command()
