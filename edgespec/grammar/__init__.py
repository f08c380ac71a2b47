"""What an answer may look like: GBNF and JSON schemas, and which tokens may come next.

llguidance does the work (github.com/guidance-ai/llguidance); llama.cpp, vLLM and SGLang use it, too. A
grammar is a text in its Lark notation: schemas are written into that as they are, GBNF is translated.
llama.cpp's own sampler (src/llama-grammar.cpp) is no choice: it ends the process where a token does not
fit, never returns from some grammars, and looks at every token for every row of a verify pass.
"""
