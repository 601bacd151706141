"""The forge: the part of GitHub's REST API that the github server and its neighbours use."""
