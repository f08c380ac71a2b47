"""Methods against plain decoding: same prompts, same process, turn and turn about."""
