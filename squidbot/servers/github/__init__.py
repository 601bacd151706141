"""The github server: pull requests, issues and code over GitHub's REST API."""
