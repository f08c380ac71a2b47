from __future__ import annotations

import random

import pytest

from tests.tui.reading import texts
from tui.markdown import document as document_module
from tui.markdown.document import Document
from tui.markdown.inline import Inline
from tui.markdown.lines import Line
from tui.markdown.table import fit

EVERYTHING = """\
# Title with `code`

Some **bold**, *soft* and ~~gone~~ text with a [late link][target] and http://example.org/x in
a paragraph that goes on\\
after a hard break.

Setext
======

1. one
2. two with a paragraph that is so long that it has to go on in another row of the terminal

   and a second paragraph
   - nested
     - deeper

     ```sh
     echo nested
     ```
10. ten
* * *
> quoted text
> > deeper
>
> - in a quote

| left | right |
|:-----|------:|
| a    |     1 |
| **b** | 22 |

```python
def f(x):
    \"\"\"Text 'with quotes'.\"\"\"
    return x
```

    indented code

~~~~
~~~
tildes
~~~~

![picture](http://example.org/p.png) &amp; \\* end

[target]: http://example.org/late
"""


def rows(text: str, width: int = 40) -> list[str]:
    document = Document(text)
    document.finish()
    return texts(document.lines(width))


def looks(lines: list[Line]) -> list[tuple[object, ...]]:
    """All that is drawn of the rows."""
    return [(line.lead, line.text.plain, line.text.spans, line.joint, line.fill) for line in lines]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 400])
def test_a_text_in_pieces_is_drawn_as_the_whole(size: int) -> None:
    whole = Document(EVERYTHING)
    whole.finish()
    grown = Document()
    for start in range(0, len(EVERYTHING), size):
        grown.append(EVERYTHING[start : start + size])
        grown.lines(40)
    grown.finish()
    assert looks(grown.lines(40)) == looks(whole.lines(40))


def test_any_text_in_any_pieces_is_drawn_as_the_whole() -> None:
    lines = [
        *EVERYTHING.splitlines(),
        "",
        "",
        "-",
        "```",
        "> ```",
        "   - x",
        "[a]: /b",
        "\ttab",
        "1)",
    ]
    for seed in range(60):
        chance = random.Random(seed)
        text = "\n".join(chance.choices(lines, k=12))
        whole = Document(text)
        whole.finish()
        grown, start = Document(), 0
        while start < len(text):
            end = start + chance.randint(1, 30)
            grown.append(text[start:end])
            grown.lines(30)
            start = end
        grown.finish()
        assert looks(grown.lines(30)) == looks(whole.lines(30)), text


@pytest.mark.parametrize(
    "text", ["1. a\n\n   ```\n   b\n   ```\n10. ten", "- a\n\n- b", "> a\n> b"]
)
def test_half_a_line_is_not_taken_for_another_block(text: str) -> None:
    whole = Document(text)
    grown = Document()
    for letter in text:
        grown.append(letter)
    assert looks(grown.lines(40)) == looks(whole.lines(40))


def test_code_that_is_never_closed_ends_in_the_right_colours() -> None:
    """Scripts in HTML look like text to a lexer that begins in their midst."""
    script = "".join(f"let x{n} = 'a' + {n};\n" for n in range(60))
    code = f"```html\n<script>\n{script}</script>\n"
    whole = Document(code)
    whole.finish()
    grown = Document()
    for start in range(0, len(code), 40):
        grown.append(code[start : start + 40])
        grown.lines(60)
    assert looks(grown.lines(60)) != looks(whole.lines(60))
    grown.finish()
    assert looks(grown.lines(60)) == looks(whole.lines(60))


def test_everything_is_drawn() -> None:
    drawn = rows(EVERYTHING, 60)
    for expected in (
        "Title with code",
        "a paragraph that goes on",
        "after a hard break.",
        "1. one",
        "   and a second paragraph",
        "   • nested",
        "     ▪ deeper",
        "       echo nested",
        "3. ten",
        "─" * 60,
        "▌ quoted text",
        "▌ ▌ deeper",
        "▌ • in a quote",
        "left │ right",
        "─────┼──────",
        "a    │     1",
        "b    │    22",
        "  python",
        "      return x",
        "  indented code",
        "  tildes",
        "🖼 picture & * end",
    ):
        assert any(row.endswith(expected) for row in drawn), expected
    assert not any("target" in row for row in drawn)


def test_blocks_are_apart_and_list_items_are_not() -> None:
    assert rows("# A\n\ntext\n\n- one\n\n- two\n  more\n\n  other\n- three\n\nend") == [
        "A", "", "text", "", "• one", "• two more", "", "  other", "• three", "", "end",
    ]  # fmt: skip


def test_a_blank_row_in_a_quote_belongs_to_it() -> None:
    assert rows("> one\n>\n> two\n\nthree") == ["▌ one", "▌", "▌ two", "", "three"]


def test_an_item_without_text_is_seen() -> None:
    assert rows("- a\n-\n- c") == ["• a", "•", "• c"]


def test_numbers_stand_in_a_column() -> None:
    assert rows("9. a\n9. b\n\n   ```\n   c\n   ```")[:2] == [" 9. a", "10. b"]


def test_html_is_text() -> None:
    assert rows("<div>\nkept\n</div>\n\nand <b>this</b>") == [
        "<div> kept </div>",
        "",
        "and <b>this</b>",
    ]


def test_a_narrow_terminal_loses_nothing() -> None:
    for width in (1, 4, 9, 13):
        document = Document(EVERYTHING)
        plain = "".join(line.text.plain for line in document.lines(width))
        for word in ("Title", "paragraph", "nested", "quoted", "return", "indented"):
            assert word in plain, (width, word)


def test_cells_that_are_too_long_go_on_below() -> None:
    table = "| a | long |\n|---|---|\n| 1 | some words that do not fit |"
    assert rows(table, 16) == [
        "a │ long",
        "──┼─────────────",
        "1 │ some words",
        "  │ that do not",
        "  │ fit",
    ]


def test_narrow_columns_leave_their_room_to_wide_ones() -> None:
    assert fit([2, 30, 40], 42) == [2, 20, 20]
    assert fit([2, 5, 40], 60) == [2, 5, 40]
    assert sum(fit([30, 30, 30, 30], 40)) == 40


def links(document: Document) -> list[str]:
    return [
        str(span.style.meta["@click"])
        for line in document.lines(60)
        for span in line.text.spans
        if not isinstance(span.style, str)
    ]


def test_link_targets_may_come_after_the_text() -> None:
    document = Document("See [it][here] and [it][here].\n\n- [it][here]\n\nMore.\n\n")
    assert links(document) == []
    document.append("[here]: http://exam")
    document.append("ple.org/a\n")
    assert links(document) == ["link('http://example.org/a')"] * 3
    document.append("\nNext block.\n\n[here]: http://example.org/second\n\nLast.")
    assert links(document) == ["link('http://example.org/a')"] * 3


def test_a_link_that_could_run_something_is_text() -> None:
    assert links(Document("[x](javascript:alert) [y](file:///etc/passwd) [z](https://ok.org)")) == [
        "link('https://ok.org')"
    ]


def test_rows_that_do_not_change_are_kept() -> None:
    document = Document()
    items = [f"{number}. item **{number}** and [x](http://e.org)\n" for number in range(10, 40)]
    for text in ("para one\n\n", "para two\n\n", *items, "\n```c\n", *["int a = 1;\n"] * 40):
        before = document.lines(40)
        document.append(text)
        after = document.lines(40)
        same = sum(1 for old, new in zip(before, after, strict=False) if old is new)
        assert same >= len(before) - 2
    assert len(document.lines(40)) > 70


def test_what_is_parsed_does_not_grow_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[int] = []
    original = Inline._parsed

    def counting(self: Inline, source: str) -> object:
        parsed.append(len(source))
        return original(self, source)

    monkeypatch.setattr(Inline, "_parsed", counting)
    document = Document()
    for number in range(200):
        document.append(f"- item {number} with some words\n")
        document.lines(40)
    assert len(parsed) <= 2 * 200


def test_blocks_that_are_done_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    parser = document_module._blocks_only()
    original = parser.parse

    def counting(source: str, env: object = None) -> object:
        read.append(len(source))
        return original(source, env)  # type: ignore[arg-type]

    monkeypatch.setattr(parser, "parse", counting)
    document = Document()
    for number in range(100):
        document.append(f"Paragraph {number} has a few words.\n\n")
    assert max(read) < 100
