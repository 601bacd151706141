"""Rate limits: in memory, or in a Redis that several gateways share."""
