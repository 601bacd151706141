"""Issuers of identity outside of squidbot."""
