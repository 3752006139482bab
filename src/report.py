"""`python -m src.report`: the command `tartan report` in a checkout."""

from tartan.report.main import command

if __name__ == "__main__":
    command()
