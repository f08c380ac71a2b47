"""The terminal app. It knows the session and its events, never the engine beneath."""
