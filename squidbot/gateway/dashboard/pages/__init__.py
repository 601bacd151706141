"""One module per page: what it shows, from the desk, and what its forms do."""
