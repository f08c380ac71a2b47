"""What is known about model files: where they are, what they hold, which of them go together.

A leaf: it imports neither the engine nor the runtime, so that listing models costs nothing.
"""
