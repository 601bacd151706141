"""The jira server: tickets and sprints over Jira's REST API, in the cloud or in a data center."""
