"""One statement's life: from text to rows, inside a transaction, whoever asked."""
