"""The heart: values, rules and use cases, without any outside thing."""
