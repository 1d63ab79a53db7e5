"""The entry point of `python -m rplctl`, which runs the same program as the command `rplctl`."""

from rplctl.cli import main

if __name__ == "__main__":
    main()
