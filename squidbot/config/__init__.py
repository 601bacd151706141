"""The settings file: the only reader of the environment and of settings files."""
