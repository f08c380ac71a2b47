"""Settings for a kind of machine, as files that people can read and change."""
