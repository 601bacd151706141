"""How bytes move: one function per transport, picked from a table that can be swapped or added to."""
