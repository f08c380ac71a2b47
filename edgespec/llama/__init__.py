"""llama.cpp through llama-cpp-python's low-level functions. Nothing else in the project imports it."""
