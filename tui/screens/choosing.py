"""Who answers: other models, another persona or system text, other figures of the tuner."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, cast, get_args

from textual import on

from edgespec.errors import EdgeSpecError, UsageError
from edgespec.settings import Method, in_words, with_value
from tui.messages import DownloadEnded
from tui.phase import REFUSALS, Phase
from tui.screens.keeping import KeepingScreen
from tui.screens.picture import model_title

if TYPE_CHECKING:
    from edgespec.history.records import Summary
    from edgespec.personas import Persona
    from edgespec.settings import Load, Settings
    from tui.downloads import Downloads
    from tui.screens.first_run import FirstChoice
    from tui.services import Services


class ChoosingScreen(KeepingScreen):
    """A conversation goes on whatever is chosen."""

    def __init__(self, settings: Settings, services: Services) -> None:
        super().__init__(settings, services)
        self._downloads = services.downloads

    @property
    def downloads(self) -> Downloads:
        """They go on while the chat does."""
        if self._downloads is None:
            from tui.downloads import Downloads  # noqa: PLC0415 - after the first picture

            self._downloads = Downloads(on_end=lambda one: self._tell(DownloadEnded(one)))
        return self._downloads

    def close(self) -> str:
        """Stop downloads and write what is not written, once the screen is gone; what to say of it."""
        words = [self._downloads.close()] if self._downloads is not None else []
        if self.recorder is not None and not self.recorder.close():
            words.append("The end of the conversation could not be written into the history.")
        return "\n".join(filter(None, words))

    async def action_models(self, argument: str = "") -> None:
        """Choose, fetch and remove models."""
        from tui.screens.models import ModelsScreen  # noqa: PLC0415 - opened seldom

        screen = ModelsScreen(self.downloads, self.settings.load, self._held())
        choice = await self.app.push_screen_wait(screen)
        if screen.asked_hub or self.downloads.all():
            self.use_network()
        if choice is not None:
            await self.load(replace(self.settings.load, model=choice.model, draft=choice.draft))

    async def begin_with(self, choice: FirstChoice) -> None:
        """Go on as somebody chose who is here for the first time."""
        if choice.action == "fetch" and choice.row is not None:
            self.downloads.start(choice.row)
            self.use_network()
            await self.say(f"{choice.row.name} is on its way; F2 shows how far it is.")
        elif choice.action == "choose":
            await self.action_models()

    def use_network(self) -> None:
        """Something was asked of the Hub, so that nobody can say any more that nothing was."""
        self.status = replace(self.status, offline=False)

    async def action_model(self, argument: str) -> None:
        """Load another model and keep the conversation."""
        await self.load(replace(self.settings.load, model=argument, draft=None))

    async def action_draft(self, argument: str) -> None:
        """Load another draft, or none."""
        await self.load(replace(self.settings.load, draft=argument))

    async def action_method(self, argument: str = "") -> None:
        """Show how drafts are made, or load the same models for another way."""
        names = get_args(Method)
        if argument in names:
            await self._load_for(cast("Method", argument))
            return
        known = f"There are {', '.join(names)}."
        if argument:
            error = UsageError(f"There is no method called {argument}.", known)
            await self.say(f"Error: {error}", error=True)
        else:
            await self.say(f"The method is {self.settings.load.method}. {known}")

    async def _load_for(self, method: Method) -> None:
        if self.phase is Phase.READY and self.session and (why := self.session.lack(method)):
            await self.say(f"Error: {why}", error=True)
        else:
            await self.load(replace(self.settings.load, method=method))

    async def action_set(self, argument: str = "") -> None:
        """Show or change temperature and the like; it holds from the next answer on."""
        if not argument:
            await self.say(f"Answers are drawn with {in_words(self.settings)}.")
            return
        name, _, value = argument.partition(" ")
        if not value.strip():
            await self.say(
                f"Answers are drawn with {in_words(self.settings)}. Change it: /set {name} VALUE"
            )
            return
        try:
            changed = with_value(self.settings, name, value.strip())
        except EdgeSpecError as error:
            await self.say(f"Error: {error}", error=True)
            return
        await self._configure(changed, f"From the next answer on: {in_words(changed)}.")

    async def action_system(self, argument: str = "") -> None:
        """Show the system text, or change it; it holds from the next answer on."""
        own = self.settings.own
        if not argument:
            text = self.settings.system
            await self.say(f"The system text is: {text}" if text else "There is no system text.")
            return
        await self._configure(
            replace(
                self.settings,
                system=argument,
                persona="",
                own=replace(own, system=argument) if own else None,
            ),
            "The next answer follows the new system text.",
        )

    async def action_persona(self, argument: str = "") -> None:
        """Let another persona answer."""
        personas = await asyncio.to_thread(self.services.personas)
        if argument:
            try:
                await self._become(personas.named(argument))
            except EdgeSpecError as error:
                await self.say(f"Error: {error}", error=True)
            return
        from tui.screens.persona import PersonaScreen  # noqa: PLC0415 - opened seldom

        chosen = await self.app.push_screen_wait(PersonaScreen(personas, self.settings.persona))
        if chosen is not None:
            await self._become(chosen)

    async def load(self, load: Load) -> None:
        """Load other models; the ones before come back where that fails."""
        if self.phase not in {Phase.READY, Phase.FAILED}:
            await self.say(f"Not loaded. {REFUSALS[self.phase]}")
            return
        if load == self.settings.load and self.phase is Phase.READY:
            await self.say("That is what answers already.")
            return
        if self.services.missing and (why := await asyncio.to_thread(self.services.missing, load)):
            await self.say(f"Error: {why}", error=True)
            return
        self.set_phase(Phase.LOADING)
        self.reset_numbers()
        await self.show_loading(model_title(load.model))
        self.switch_session(replace(self.settings, load=load, notices=()))

    async def action_tune(self, argument: str = "") -> None:
        """Measure this pair on this machine."""
        session = self.session
        if session is None:
            return
        from tui.screens.tune import TuneScreen  # noqa: PLC0415 - opened seldom

        self.set_phase(Phase.TUNING)
        await self.app.push_screen_wait(
            TuneScreen(
                lambda quick: self.lend(lambda lent: lent.tune(quick=quick, force=True)),
                session.cancel,
                known=await asyncio.to_thread(session.tuned),
                title=session.target_name,
            )
        )
        self.set_phase(Phase.READY)
        self.panel.show_why(session.why)

    def _held(self) -> dict[str, int]:
        """Bytes by device that the models here would give back."""
        held: dict[str, int] = {}
        for model in self.session.memory().models if self.session else ():
            for share in model.shares:
                held[share.device] = held.get(share.device, 0) + share.total
        return held

    async def _become(self, persona: Persona) -> None:
        from edgespec.personas import apply, pair_problem  # noqa: PLC0415 - used seldom

        if await self._configure(apply(self.settings, persona), f"{persona.title} answers now."):
            missing = await asyncio.to_thread(pair_problem, persona)
            if missing:
                await self.say(missing)
            elif persona.pair and persona.pair != self.settings.load.model:
                await self.say(f"It prefers {persona.pair}: /model {persona.pair} loads it.")

    async def _configure(self, settings: Settings, done: str) -> bool:
        """Go by other settings for the same models."""
        if self.session is None:
            return False
        try:
            self.session.configure(settings)
        except EdgeSpecError as error:
            await self.say(f"Error: {error}", error=True)
            return False
        self.settings = settings
        self.name_models()
        if self.recorder:
            self.recorder.become(settings.persona, settings.system or "")
        await self.say(done)
        return True

    async def resumed(self, summary: Summary) -> None:
        """Whoever answered in a conversation goes on answering in it."""
        if not summary.persona or summary.persona == self.settings.persona:
            return
        personas = await asyncio.to_thread(self.services.personas)
        try:
            persona = personas.named(summary.persona)
        except EdgeSpecError as error:
            await self.say(f"Error: {error}", error=True)
            return
        from edgespec.personas import apply  # noqa: PLC0415 - used seldom

        await self._configure(apply(self.settings, persona), f"{persona.title} answers here.")

    @on(DownloadEnded)
    async def _download_ended(self, event: DownloadEnded) -> None:
        one = event.download
        if one.stored is not None:
            await self.say(f"{one.row.name} is here: /model {one.stored} loads it.")
        elif one.state == "failed":
            await self.say(f"Error: {one.row.name} has not come: {one.note}", error=True)
