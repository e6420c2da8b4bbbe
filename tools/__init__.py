"""Scripts that build, test and tidy this repository. Nothing here is shipped."""
