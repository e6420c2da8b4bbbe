"""cast."""
