"""What the machine itself provides."""
