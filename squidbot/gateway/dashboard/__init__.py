"""The window for people: pages rendered here, live by server-sent events, with nothing loaded from elsewhere."""
