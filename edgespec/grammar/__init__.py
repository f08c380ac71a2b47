"""What an answer may look like: GBNF and JSON schemas, and which tokens may come next.

Grammars are matched here and not by llama.cpp's own sampler (src/llama-grammar.cpp): that one ends
the process where a token does not fit, never returns from some grammars (hidden left recursion,
many ways to read the same text), and looks at every token of the vocabulary for every row of a
verify pass. Here a state is a number, and what may follow it is worked out once.
"""
