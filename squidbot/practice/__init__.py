"""The practice world: a local forge and tracker that speak the GitHub and Jira REST APIs, on real git."""
