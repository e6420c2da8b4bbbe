"""`python -m belvedere` is the command `belvedere`."""

from belvedere.interfaces.cli import main

main()
