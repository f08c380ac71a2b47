"""Profiles: what they may hold, who wins, and which one a machine gets."""

from __future__ import annotations

from collections.abc import Collection
from importlib import resources
from pathlib import Path

import pytest

from profiles import layers
from profiles.classes import CLASSES, class_of
from profiles.gpus import Gpu, Vendor
from profiles.hardware import Hardware
from profiles.layers import Layer, builtin, merge, resolve, user_file, user_layer
from profiles.profile import KEYS, ProfileProblem, default, flat, flatten, parse
from tests.profiles.machines import APPLE, BUILT_IN, card, machine

CUDA: frozenset[Vendor] = frozenset({"nvidia"})
VULKAN: frozenset[Vendor] = frozenset({"nvidia", "amd", "intel"})
METAL: frozenset[Vendor] = frozenset({"apple"})
DEFAULT, SMALL = "profiles/builtin/default.yaml", "profiles/builtin/small-cpu.yaml"

# As the tools of real cards report them, in MiB.
CARDS = {
    4096: "gpu-6gb",
    6144: "gpu-6gb",
    8188: "gpu-8gb",
    11264: "gpu-8gb",
    12288: "gpu-12gb",
    16376: "gpu-12gb",
    23028: "gpu-24gb",
    24564: "gpu-24gb",
    46068: "gpu-48gb",
    143771: "gpu-48gb",
}


@pytest.fixture(autouse=True)
def _no_other_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDGESPEC_PROFILE", raising=False)


@pytest.mark.parametrize(
    ("hardware", "usable", "name"),
    [
        (machine(cores=1, ram=64), (), "small-cpu"),
        (machine(cores=4, ram=64), (), "small-cpu"),
        (machine(cores=8, ram=7.6), (), "small-cpu"),
        (machine(cores=5, ram=15.5), (), "desktop-cpu"),
        (machine(cores=64, ram=512), VULKAN, "desktop-cpu"),
        (machine(BUILT_IN, cores=8), VULKAN, "integrated-gpu"),
        (machine(BUILT_IN, cores=8), CUDA, "desktop-cpu"),
        (machine(BUILT_IN, card(8188)), VULKAN, "gpu-8gb"),
        (machine(card(24564)), (), "desktop-cpu"),
        (machine(card(24564), cores=2), (), "small-cpu"),
        (machine(card(24564), cores=2), CUDA, "gpu-24gb"),
        (machine(card(None)), CUDA, "gpu-6gb"),
        (machine(card(12288), card(12288)), CUDA, "gpu-24gb"),
        (machine(card(12288), card(16384, "amd")), VULKAN, "gpu-12gb"),
        (machine(card(12288), card(24564, "amd")), CUDA, "gpu-12gb"),
        (machine(card(16384, "intel")), VULKAN, "gpu-12gb"),
        (machine(APPLE, ram=8), METAL, "apple-8gb"),
        (machine(APPLE, ram=16), METAL, "apple-16gb"),
        (machine(APPLE, ram=24), METAL, "apple-16gb"),
        (machine(APPLE, ram=32), METAL, "apple-32gb"),
        (machine(APPLE, ram=192), METAL, "apple-32gb"),
        *((machine(card(mib)), CUDA, name) for mib, name in CARDS.items()),
    ],
)
def test_the_class_of_a_machine(hardware: Hardware, usable: Collection[Vendor], name: str) -> None:
    assert class_of(hardware, usable) == name
    assert resolve(hardware, usable=usable).layers[1] == f"profiles/builtin/{name}.yaml"


def test_every_builtin_file_belongs_to_a_class_and_says_what_it_is_for() -> None:
    folder = resources.files("profiles") / "builtin"
    names = {file.name.removesuffix(".yaml"): file for file in folder.iterdir()}
    assert set(names) == {"default", *CLASSES}
    for name, file in names.items():
        assert file.read_text(encoding="utf-8").startswith("# "), name


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_sets_only_what_differs_and_sets_it_right(name: str) -> None:
    whole = flat(default())
    for key, value in flatten(builtin(name).values, "").items():
        assert value != whole[key], key
    merge([builtin("default"), builtin(name)])


def test_the_default_sets_every_key() -> None:
    assert set(builtin("default").values) == set(KEYS)
    assert default().draft_length == "auto"
    assert default() == merge([builtin("default")]).profile


def test_later_layers_win_key_by_key() -> None:
    found = resolve(
        machine(cores=8),
        tuned=Layer("tuned.json", {"threads": 3, "context": 1, "gpu_layers": 7}),
        user=Layer("mine.yaml", {"context": 2, "sampling": {"top_k": 5}, "gpu_layers": -1}),
        options=[Layer("--ctx", {"context": 3}), Layer("--temp", {"sampling.temperature": 0.0})],
    )
    profile = found.profile
    assert (profile.context, profile.threads, profile.gpu_layers) == (3, 3, -1)
    assert (profile.sampling.top_k, profile.sampling.temperature) == (5, 0)
    assert profile.sampling.top_p == default().sampling.top_p
    assert found.layers == (
        DEFAULT,
        "profiles/builtin/desktop-cpu.yaml",
        "tuned.json",
        "mine.yaml",
        "--ctx",
        "--temp",
    )
    assert set(found.sources) == set(KEYS)
    assert {key: found.sources[key] for key in ("context", "threads", "gpu_layers")} == {
        "context": "--ctx",
        "threads": "tuned.json",
        "gpu_layers": "mine.yaml",
    }
    assert found.sources["sampling.top_k"] == "mine.yaml"
    assert found.sources["sampling.temperature"] == "--temp"
    assert found.sources["sampling.top_p"] == DEFAULT


def test_a_class_wins_over_the_default() -> None:
    found = resolve(machine(cores=8))
    assert found.profile.context == 8192
    assert found.sources["context"] == "profiles/builtin/desktop-cpu.yaml"
    assert resolve(machine(cores=2)).sources["context"] == DEFAULT


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("context: 0", ["context", "greater than or equal to 1", "0"]),
        ("context: 4096.5", ["context", "integer"]),
        ("context: '4096'", ["context", "integer"]),
        ("context: auto", ["context", "integer"]),
        ("context: true", ["context", "integer"]),
        ("context:", ["context", "None"]),
        ("draft_length: -1", ["draft_length", "auto or a whole number from 0", "-1"]),
        ("draft_length: many", ["draft_length", "'many'"]),
        ("threads: 0", ["threads", "from 1"]),
        ("threads: true", ["threads", "from 1"]),
        ("gpu_layers: -2", ["gpu_layers", "from -1"]),
        ("kv_type: f64", ["kv_type", "q8_0"]),
        ("mmap: 1", ["mmap", "boolean"]),
        ("sampling: {temperature: -1}", ["sampling.temperature", "-1"]),
        ("sampling: {temperature: .nan}", ["sampling.temperature"]),
        ("sampling: {temperature: .inf}", ["sampling.temperature", "finite"]),
        ("sampling: {top_p: 0}", ["sampling.top_p"]),
        ("sampling: {top_k: 1.5}", ["sampling.top_k"]),
        ("sampling: {top_k: '3'}", ["sampling.top_k", "integer"]),
        ("sampling: 3", ["sampling"]),
        ("sampling: {top_q: 3}", ["sampling.top_q", "top_"]),
        ("contxt: 3", ["contxt", "Did you mean context?"]),
        ("temperature: 1", ["temperature", "sampling.temperature"]),
        ("1: 2", ["1"]),
        ("- context", ["key: value"]),
        ("just words", ["key: value"]),
        ("context: : 3", ["YAML"]),
        ("context: 2020-99-99", ["YAML", "month"]),
        ("context: !!python/object:os.system {}", ["YAML"]),
    ],
)
def test_a_mistake_is_named_with_its_file(text: str, parts: list[str]) -> None:
    with pytest.raises(ProfileProblem) as caught:
        resolve(machine(), user=Layer("mine.yaml", parse(text, "mine.yaml")))
    message = str(caught.value)
    assert message.startswith("mine.yaml")
    assert "\n" not in message
    for part in parts:
        assert part in message, message


def test_a_mistake_is_named_also_where_an_option_hides_it() -> None:
    with pytest.raises(ProfileProblem, match=r"mine\.yaml: context"):
        resolve(
            machine(),
            user=Layer("mine.yaml", {"context": 0}),
            options=[Layer("--ctx", {"context": 5})],
        )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "mmap: yes",
        "sampling.top_k: 3",
        "draft_length: 0",
        "sampling: {top_p: 1}",
    ],
)
def test_what_a_file_may_say(text: str) -> None:
    resolve(machine(), user=Layer("mine.yaml", parse(text, "mine.yaml")))


def test_a_first_layer_with_gaps_is_blamed() -> None:
    with pytest.raises(ProfileProblem, match=r"half\.yaml: draft_length"):
        merge([Layer("half.yaml", {"context": 5})])


def test_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "user_config_path", lambda *_, **__: tmp_path)
    assert user_file() == tmp_path / "profile.yaml"
    assert user_layer() is None
    (tmp_path / "profile.yaml").write_text("context: 5\n")
    assert user_layer() == Layer(str(tmp_path / "profile.yaml"), {"context": 5})


def test_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other.yaml"
    monkeypatch.setenv("EDGESPEC_PROFILE", str(other))
    with pytest.raises(ProfileProblem, match="EDGESPEC_PROFILE"):
        user_layer()
    other.write_text("context: 7\n")
    found = user_layer()
    assert found is not None
    assert (found.source, found.values) == (str(other), {"context": 7})
    monkeypatch.setenv("EDGESPEC_PROFILE", " ")
    assert user_file().name == "profile.yaml"


def test_a_file_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGESPEC_PROFILE", str(tmp_path))
    with pytest.raises(ProfileProblem, match="cannot be read"):
        user_layer()
    (tmp_path / "raw.yaml").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("EDGESPEC_PROFILE", str(tmp_path / "raw.yaml"))
    with pytest.raises(ProfileProblem, match="UTF-8"):
        user_layer()
    monkeypatch.delenv("EDGESPEC_PROFILE")
    monkeypatch.setattr(layers, "user_config_path", lambda *_, **__: tmp_path / "raw.yaml")
    assert user_layer() is None, "a home that is no folder holds no profile"


def test_a_gpu_of_no_vendor_that_is_usable_does_not_decide() -> None:
    only = Gpu("amd", "Radeon", 16 << 30, integrated=False)
    assert class_of(machine(only, cores=2), CUDA) == "small-cpu"
