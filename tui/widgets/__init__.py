"""One module for each widget; none of them knows the session."""
