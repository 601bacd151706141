"""How bytes move: one function per transport."""
