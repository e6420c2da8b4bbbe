"""Text to trees: a lexer and a recursive-descent parser of PostgreSQL's grammar."""
