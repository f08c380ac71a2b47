"""What a file's name says about its content: Markdown, code in a language, or plain text."""

from __future__ import annotations

from pathlib import PurePath

_BY_SUFFIX = {
    "python": "py pyi pyw",
    "javascript": "js mjs cjs jsx",
    "typescript": "ts mts cts tsx",
    "html": "html htm xhtml vue svelte",
    "css": "css scss sass less tcss",
    "json": "json jsonl ndjson ipynb geojson webmanifest",
    "yaml": "yaml yml",
    "toml": "toml",
    "ini": "ini cfg conf properties env editorconfig",
    "xml": "xml svg xsd xsl plist",
    "sql": "sql",
    "bash": "sh bash zsh ksh",
    "fish": "fish",
    "powershell": "ps1 psm1",
    "batch": "bat cmd",
    "c": "c h",
    "cpp": "cc cpp cxx hh hpp hxx ino cu cuh",
    "csharp": "cs",
    "objectivec": "m mm",
    "java": "java",
    "kotlin": "kt kts",
    "scala": "scala sc",
    "groovy": "groovy gradle",
    "go": "go",
    "rust": "rs",
    "swift": "swift",
    "zig": "zig",
    "dart": "dart",
    "ruby": "rb rake gemspec",
    "php": "php",
    "perl": "pl pm",
    "lua": "lua",
    "r": "r",
    "julia": "jl",
    "haskell": "hs",
    "ocaml": "ml mli",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "clojure": "clj cljs cljc edn",
    "lisp": "el lisp scm rkt",
    "nix": "nix",
    "terraform": "tf tfvars",
    "protobuf": "proto",
    "graphql": "graphql gql",
    "latex": "tex sty cls bib",
    "diff": "diff patch",
    "csv": "csv tsv",
    "jinja": "j2 jinja",
    "makefile": "mk mak",
    "cmake": "cmake",
    "asm": "s asm",
    "vim": "vim",
}
_LANGUAGES = {suffix: name for name, suffixes in _BY_SUFFIX.items() for suffix in suffixes.split()}
_BY_NAME = {
    "dockerfile": "dockerfile",
    "containerfile": "dockerfile",
    "makefile": "makefile",
    "gnumakefile": "makefile",
    "cmakelists.txt": "cmake",
    "gemfile": "ruby",
    "rakefile": "ruby",
    "jenkinsfile": "groovy",
}
_MARKDOWN = frozenset({"md", "markdown", "mdown", "mkd", "mdx", "rmd", "qmd"})

MARKDOWN = "markdown"
PLAIN = "text"


def language_of(name: str) -> str:
    """The language that a fence around a file of this name states; `text` for none in particular."""
    path = PurePath(name)
    suffix = path.suffix[1:].casefold()
    if suffix in _MARKDOWN:
        return MARKDOWN
    return _BY_NAME.get(path.name.casefold()) or _LANGUAGES.get(suffix, PLAIN)
