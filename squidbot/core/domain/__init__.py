"""Values and rules: frozen dataclasses and total functions, standard library only."""
