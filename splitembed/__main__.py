"""`python -m splitembed`: the `splitembed` command, where its script is not on the path."""

from splitembed.cli.commands import main

if __name__ == "__main__":
    main(prog_name="python -m splitembed")
