"""The doors: DB-API, command line, shell, and the socket by which other processes reach a store."""
