"""The git server: nine tools on the git program, in the repositories that it was given and nowhere else."""
