"""The filesystem server: one folder, a few tools on its files, and no way out of it."""
