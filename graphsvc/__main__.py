"""`python -m graphsvc`: the command line."""

from graphsvc.cli.main import main

main()
