"""The entry point of `python -m rplctl`: the same program as the console script."""

from rplctl.cli import main

if __name__ == "__main__":
    main()
