"""The command line for `python -m aberra`, where the command `aberra` is not on the path."""

from aberra.cli import main

if __name__ == "__main__":  # processes that a fit starts import this module too
    main()
