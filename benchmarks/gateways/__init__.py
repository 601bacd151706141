"""Gateways beside each other: HTTP in, one stdio server out, the same load on all of them."""
