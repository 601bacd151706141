"""The tracker: the part of Jira's REST API that the jira server and its neighbours use, as Cloud and as Data Center."""
