"""`python -m src.predict`: the command `tartan predict` in a checkout."""

from tartan.predict.main import command

if __name__ == "__main__":
    command()
