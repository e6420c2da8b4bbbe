"""The doors: DB-API, command line, shell."""
