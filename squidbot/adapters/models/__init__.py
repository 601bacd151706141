"""Language models: OpenAI-compatible, Anthropic's, and scripted ones. Their libraries load when a model is asked."""
