"""What a person types is found, whatever it is."""

from __future__ import annotations

import pytest

from edgespec.history.store import History
from tests.history.talking import ids, talk


def found(history: History, text: str) -> list[int]:
    return [hit.summary.id for hit in history.search(text)]


def test_words_prefixes_case_and_accents(history: History) -> None:
    number = talk(history, "How do I bake a Käsekuchen?", "With quark, d'été or in winter.")
    other = talk(history, "Something else", "entirely")
    for text in (
        "kasekuchen",
        "KÄSE",
        "käse",
        "ka\u0308se",
        "kase bake",
        "bake Kase",
        "ete",
        "d'été",
        "quark, d",
        "winter.",
        "b",
    ):
        assert found(history, text) == [number], text
    assert found(history, "kuchen") == [], "the middle of a word"
    assert found(history, "bake quark") == [], "words of two messages"
    assert found(history, "bake else") == []
    assert set(found(history, "e")) == {number, other}


@pytest.mark.parametrize(
    "text",
    ["模型", "推理", "模", "快模", "Python模型", "python模型", "模型 推理", "推理 GPU", "gpu 模型"],
)
def test_chinese(history: History, text: str) -> None:
    number = talk(
        history, "怎样让推理更快模型更小", "用Python模型，推理在 GPU 上。怎样让推理更快模型"
    )
    talk(history, "别的东西 GPU python", "没有")
    assert found(history, text) == [number]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("プログラミングが好き", "ログラ"),
        ("ｶﾀｶﾅ", "ﾀｶ"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("한국어 모델은 빠르다", "모델"),
        ("я люблю модели", "Модел"),
        ("I use C++ daily", "c++"),
        ("I use C# daily", "C#"),
        ("a -> b", "->"),
        ("50 % of it", "%"),
        ("snake_case_name", "_"),
        ("a\\b", "\\"),
        ("so happy 😀 now", "😀"),
        ("f(x)", "f(x)"),
    ],
)
def test_other_scripts_and_signs(history: History, content: str, text: str) -> None:
    number = talk(history, content)
    talk(history, "I use it daily, cpp")
    assert found(history, text) == [number]


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '""',
        '"unclosed',
        "'",
        "*",
        "a*",
        "AND",
        "OR NOT",
        "NEAR(a b)",
        "NEAR(a, 5)",
        "content:a",
        "{content} : a",
        "^a",
        "a + b",
        "-a",
        "(",
        ")",
        "a)",
        ";--",
        "\0",
        "a\0b",
        "\\",
        "%",
        "_",
        "?",
        ":leaf",
        "\ud83d",
        "\U0001e900",
        "x" * 50_000,
        "word " * 5_000,
        "模" * 5_000,
        " ",
        "",
        "\n\t",
    ],
)
def test_any_text_is_safe(history: History, text: str) -> None:
    talk(history, "nothing of the kind", "here")
    assert found(history, text) in ([], found(history, "nothing"))


def test_operators_are_words(history: History) -> None:
    number = talk(history, "this AND that")
    talk(history, "this that")
    assert found(history, "this AND") == [number]
    assert found(history, "NOT") == []


def test_a_phrase(history: History) -> None:
    number = talk(history, "the quick brown fox")
    talk(history, "brown and quick")
    assert found(history, '"quick brown"') == [number]
    assert len(found(history, '"quick bro')) == 2, "not closed yet: just words"


def test_newest_conversations_first_each_once(history: History) -> None:
    first = talk(history, "apple", "apple apple", "apple")
    second = talk(history, "apple pie")
    assert found(history, "apple") == [second, first]
    history.add(first, None, "user", "back")
    assert found(history, "apple") == [first, second]
    assert [hit.summary.id for hit in history.search("apple", limit=1)] == [first]


def test_the_first_message_that_fits(history: History) -> None:
    number = talk(history, "pears", "apples here", "apple apple")
    (hit,) = history.search("apple")
    assert hit.message == ids(history, number)[1]
    assert hit.snippet == "[apples] here"


def test_titles_are_found_and_system_texts_are_not(history: History) -> None:
    number = history.create(title="Tax return 税务")
    system = history.add(number, None, "system", "You are a pirate.")
    question = history.add(number, system, "user", "How?")
    for text in ("tax", "return tax", "税务"):
        (hit,) = history.search(text)
        assert (hit.summary.id, hit.message) == (number, question)
    assert "[Tax]" in history.search("tax")[0].snippet
    assert history.search("pirate") == []
    history.rename(number, "Other")
    assert history.search("tax") == []


def test_what_changes_is_found_as_it_is(history: History) -> None:
    number = talk(history, "q", "first")
    history.update(ids(history, number)[1], "second", complete=False)
    assert found(history, "first") == []
    assert found(history, "second") == [number]


def test_snippets_are_short_and_show_the_match(history: History) -> None:
    talk(history, "before " * 500 + "needle\nin hay " + "after " * 500)
    (hit,) = history.search("need")
    assert "[needle] in hay" in hit.snippet
    assert hit.snippet.startswith("…")
    assert hit.snippet.endswith("…")
    assert len(hit.snippet) < 200
    talk(history, "前" * 500 + "目标" + "后" * 500)
    (hit,) = history.search("目标")
    assert "前[目标]后" in hit.snippet
    assert len(hit.snippet) < 200
