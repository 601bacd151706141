"""The HTTP API: what the desk shows and changes, for programs, with a document that says so."""
