"""The running conversation in memory: what of it is shown, and what of it is not written yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from edgespec.history.records import Entry, Role, Summary


@dataclass(eq=False, slots=True)
class Node:
    """One message. Its id comes when it is written."""

    role: Role
    parent: Node | None
    parts: list[str]
    complete: bool
    model: str = ""
    stats: Mapping[str, float] | None = None
    own: bool = True
    """Whether it was begun here; another's may still be growing elsewhere."""
    id: int | None = None
    revision: int = 1
    written: int = 0
    """The revision that is in the file."""

    def text(self) -> str:
        """All of it."""
        self.parts = ["".join(self.parts)]
        return self.parts[0]


@dataclass(frozen=True, slots=True)
class Change:
    """A message as it is to be written."""

    node: Node
    revision: int
    content: str
    complete: bool
    stats: Mapping[str, float] | None


@dataclass(eq=False, slots=True)
class Talk:
    """One conversation. Nothing of it is dropped, so that it can be written anew into another file."""

    title: str = ""
    folder: str = ""
    model: str = ""
    persona: str = ""
    system: str = ""
    id: int | None = None
    head: int | None = None
    """The leaf that the file shows, as far as it is known here."""
    new_title: str | None = None
    new_folder: str | None = None
    new_persona: str | None = None
    """What the file does not know yet."""
    writer: str = ""
    """The model that answers."""
    path: list[Node] = field(default_factory=list)
    """What is shown, first message first."""
    nodes: list[Node] = field(default_factory=list)
    """All of it, in the order in which it was begun."""
    before: list[Node] = field(default_factory=list)
    """What was shown before the running answer was asked for."""
    growing: Node | None = None
    again: Node | None = None
    """The cut answer that the running one goes on with."""
    waiting: bool = False
    """Whether an answer is to take the place of one, and nothing of it has come."""

    @classmethod
    def of(cls, summary: Summary, entries: Sequence[Entry]) -> Talk:
        """Go on with a conversation of the history, of which `entries` are shown."""
        talk = cls(summary.title, summary.folder, summary.model, summary.persona, id=summary.id)
        for entry in entries:
            node = Node(entry.role, talk.leaf, [entry.content], entry.complete, entry.model)
            node.stats, node.id = dict(entry.stats), entry.id
            node.own, node.written = False, node.revision
            talk._append(node)
        return talk

    @property
    def leaf(self) -> Node | None:
        """The last message that is shown."""
        return self.path[-1] if self.path else None

    @property
    def head_now(self) -> Node | None:
        """The leaf that the file is to show; None to leave it as it is."""
        return None if self.waiting else self.leaf

    @property
    def pending(self) -> bool:
        """Whether there is something to write."""
        new = (self.new_title, self.new_folder, self.new_persona)
        named = any(value is not None for value in new)
        unwritten = any(node.revision != node.written for node in self.nodes)
        return unwritten or (named and bool(self.nodes))

    def ask(self, question: str, keep: int | None) -> None:
        """Add a question, after `keep` messages if given; system texts do not count."""
        self._begin()
        if self.system and not self.path:
            if self.nodes:  # the first question failed, and is shown no more
                self.path.append(self.nodes[0])
            else:
                self._append(Node("system", None, [self.system], complete=True))
        if keep is not None:
            system = sum(node.role == "system" for node in self.path[:1])
            del self.path[system + keep :]
        self._append(Node("user", self.leaf, [question], complete=True))

    def ask_again(self) -> None:
        """Make room for another answer to the last question."""
        self._begin()
        self.waiting = True
        while self.path and self.path[-1].role != "user":
            self.path.pop()

    def go_on(self) -> None:
        """Let the last answer be written further; it comes again from its beginning."""
        self._begin()
        self.waiting = True
        if self.path and self.path[-1].role == "assistant":
            self.again = self.path.pop()

    def grow(self, text: str) -> None:
        """More of the running answer."""
        node = self._answer()
        node.parts.append(text)
        node.revision += 1

    def finish(self, content: str, complete: bool, stats: Mapping[str, float] | None) -> None:
        """The whole answer; when nothing came of one that replaces another, that is shown again."""
        if content or self.growing:
            node = self._answer()
            node.parts = [content or node.text()]
            node.complete, node.stats = complete, stats
            node.revision += 1
        elif len(self.path) <= len(self.before):
            self.path = self.before
        self.growing = self.again = None
        self.waiting = False

    def become(self, persona: str, system: str) -> None:
        """Somebody else answers from now on; the system text of all that is shown changes with it."""
        self.persona = self.new_persona = persona
        self.system = system
        if self.nodes and self.nodes[0].role == "system":
            self.nodes[0].parts = [system]
            self.nodes[0].revision += 1

    def give_up(self) -> None:
        """There was an error: what came stays a branch, and what was shown before is shown."""
        self.path = self.before
        self.growing = self.again = None
        self.waiting = False

    def changes(self) -> list[Change]:
        """What is to be written, parents before what follows them."""
        return [
            Change(node, node.revision, node.text(), node.complete, node.stats)
            for node in self.nodes
            if node.revision != node.written
        ]

    def named(self, title: str | None, folder: str | None, persona: str | None) -> None:
        """These are written."""
        self.new_persona = None if self.new_persona == persona else self.new_persona
        self.new_title = None if self.new_title == title else self.new_title
        self.new_folder = None if self.new_folder == folder else self.new_folder

    def forget_ids(self) -> None:
        """The file that had them is gone: all is to be written anew."""
        self.id = self.head = None
        for node in self.nodes:
            node.id, node.written = None, 0

    def _begin(self) -> None:
        self.growing = self.again = None
        self.waiting = False
        self.before = list(self.path)

    def _append(self, node: Node) -> None:
        self.nodes.append(node)
        self.path.append(node)

    def _answer(self) -> Node:
        """The running answer, which is a message only once there is something of it."""
        if self.growing is None:
            self.waiting = False
            again = self.again
            if again is not None and again.own:
                again.parts, again.complete = [], False
                self.path.append(again)
            else:
                again = Node("assistant", self.leaf, [], complete=False, model=self.writer)
                self._append(again)
            self.growing = again
        return self.growing
