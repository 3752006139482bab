"""`python -m src.export`: the command `tartan export` in a checkout."""

from tartan.export.main import command

if __name__ == "__main__":
    command()
