"""Native toolkits for agents of other frameworks: each gives them the tools of a role, through the guarded door."""
