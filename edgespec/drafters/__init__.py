"""Ways to guess the next tokens; one file a method."""
