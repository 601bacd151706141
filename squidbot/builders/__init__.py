"""How each part is built: typed functions that the container calls, each of which imports what it builds only then."""
