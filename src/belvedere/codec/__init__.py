"""SQL values to ordered bytes and back, rows, every key family, and the readable printer."""
