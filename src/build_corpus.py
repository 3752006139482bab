"""`python -m src.build_corpus`: the command `tartan build-corpus` in a checkout."""

from tartan.corpus.main import command

if __name__ == "__main__":
    command()
