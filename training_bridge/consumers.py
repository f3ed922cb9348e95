"""Pipes: they move messages between a socket and a session or a page, and decide nothing."""

import asyncio
import contextlib
import logging
import time

from channels.generic.websocket import AsyncWebsocketConsumer
from django.db.models import Case, F, When

from grading import wake
from grading.errors import Fenced, GradingError
from grading.ingest.auth import token_of
from grading.models import MachineToken, Run
from grading.review import deadlines
from training_bridge import delivery, intake, paying
from training_bridge.bell import Bell
from training_bridge.protocol.messages import (
    SUBPROTOCOL,
    CloseCode,
    Durable,
    Error,
    Metrics,
    ProtocolError,
    Receipt,
    Resume,
    Want,
)
from training_bridge.protocol.sessions import ServerSession, ServerState
from training_bridge.protocol.wire import encode
from training_bridge.threads import rows

log = logging.getLogger(__name__)
GONE = (RuntimeError, OSError)  # what a server raises when we write to a socket that is closed already
LOOK_EVERY_S = 2.0  # rows whose doorbell was lost, revoked tokens, newer lives
REFUSE_WITHIN_S = 5.0
QUEUE_RUNS = 200
MOST_NUMBERED = 1000  # messages that wait to be stored


class JobConsumer(AsyncWebsocketConsumer):
    """The job's socket: by machine token, never by a browser."""

    async def connect(self):
        self.session, self.run, self.life, self.epoch = ServerSession(), None, None, 0
        self.busy = asyncio.Lock()  # one flush at a time, or rows would overtake each other
        self.may_have_more = False  # rows that are stored and not sent yet
        self.numbered = []  # receipts and metrics taken and not stored yet
        self.passed_on = []  # rows sent and not marked so yet, as (after, to, at_s)
        self.noting, self.delivering, self.glancing = Bell(self._note), Bell(self._deliver), Bell(self._glance)
        self.looking = None
        await self.accept(SUBPROTOCOL if SUBPROTOCOL in self.scope.get("subprotocols", ()) else None)
        refused = await self._refused()
        if refused:
            await self.refuse(ProtocolError("socket", got=refused[1], expected="a machine token", code=refused[0]))
            return
        self.groups = [wake.decisions_of(self.run.pk), delivery.rows_stored(self.run.pk)]
        for group in self.groups:
            await self.channel_layer.group_add(group, self.channel_name)
        self.looking = asyncio.create_task(self._keep_looking())

    async def _refused(self) -> tuple[CloseCode, str] | None:
        headers = dict(self.scope["headers"])
        if b"origin" in headers:
            return CloseCode.REFUSED, "an Origin header: browsers have a route of their own"
        self.token = await rows(token_of)(headers.get(b"authorization", b"").decode("latin-1"))
        if self.token is None:
            return CloseCode.TOKEN, "an unknown or revoked token"
        if self.token.run.public_id != self.scope["url_route"]["kwargs"]["run"]:
            return CloseCode.NO_RUN, "a token of another run"
        if not self.token.may("train"):
            return CloseCode.REFUSED, "a token without the purpose train"
        if not self.token.run.is_live:
            return CloseCode.NO_RUN, "an imported run, which has no stream"
        self.run = self.token.run
        return None

    async def disconnect(self, code):
        if self.looking:
            self.looking.cancel()
        for bell in (self.noting, self.delivering, self.glancing):
            await bell.quiet()
        for group in getattr(self, "groups", ()):
            await self.channel_layer.group_discard(group, self.channel_name)
        if self.life:
            await rows(intake.acknowledge)(
                self.life,
                epoch=self.epoch,
                received=self.session.acknowledged,
                connected=False,
                unknown_fields=F("unknown_fields") + self.session.unknown.total(),
            )
            await rows(wake.pages)(self.run.pk)

    async def receive(self, text_data=None, bytes_data=None):
        try:
            async with self.busy:
                message = self.session.receive(text_data if text_data is not None else bytes_data)
                if message is not None:
                    await self._carry_out(message)
            if len(self.numbered) >= MOST_NUMBERED:  # the job is faster than our disk: read no further
                await self.noting.quiet()
            await self.flush()
        except ProtocolError as broken:
            await self.refuse(broken)

    async def _carry_out(self, message) -> None:
        match message:
            case Resume():
                await self._start(message)
            case Want():
                await rows(deadlines.want)(self.run, message.life, message.groups, message.within_s)
            case Durable():
                await rows(intake.acknowledge)(
                    self.life, epoch=self.epoch, received=self.session.acknowledged, durable=message.seq
                )
            case Receipt() | Metrics():
                self.numbered.append(message)
                self.noting.ring()

    async def _note(self) -> None:
        """Store what went out and came in meanwhile: one receipt a commit would cost a step its seconds."""
        taken, self.numbered = self.numbered, []
        passed_on, self.passed_on = self.passed_on, []
        async with self._minded():
            if passed_on:  # before the receipts of these rows, which count from then on
                await rows(delivery.mark_sent)(self.run, self.epoch, passed_on)
            if not taken:
                return
            noted = await rows(intake.note)(self.life, taken)
            self.session.note(min(noted, self.session.taken))  # the REST twin may have noted further
            await self.flush()

    @contextlib.asynccontextmanager
    async def _minded(self):
        """Work beside the reading of the socket: a failure closes it, and the job comes back and resumes."""
        try:
            yield
        except ProtocolError as broken:
            await self.refuse(broken)
        except Fenced as over:
            await self.refuse(ProtocolError(over.what, got=over.got, expected=over.expected, code=CloseCode.FENCED))
        except GradingError as refused:  # a number that does not follow: the job sends again from its resume
            await self.refuse(
                ProtocolError(refused.what, got=refused.got, expected=refused.expected, code=CloseCode.GAP)
            )
        except GONE:
            log.info("run %s: the job's socket closed while we wrote; it is made good at its resume", self.run.pk)
        except Exception:
            log.exception("run %s: the job's socket", self.run.pk)
            failed = ProtocolError("server", got="a failure", expected="a resume", code=CloseCode.RESTART)
            await self.refuse(failed)

    async def _start(self, resume: Resume) -> None:
        self.life, self.epoch = await rows(intake.begin)(self.run, self.session, resume)
        self.may_have_more = True
        await rows(intake.acknowledge)(self.life, epoch=self.epoch, connected=True)
        await rows(wake.pages)(self.run.pk)
        taken = {"type": "stream.taken", "channel": self.channel_name}
        await self.channel_layer.group_send(delivery.rows_stored(self.run.pk), taken)
        self.delivering.ring()  # what was decided while no socket heard the bell: the sweep may be seconds away

    async def flush(self) -> None:
        """Send the answers that wait, then stored rows while the credit window has room."""
        async with self.busy:
            for text in self.session.replies():
                await self.send(text)
            while self.may_have_more and self.session.room > 0:
                limit = min(self.session.room, 64)
                self.may_have_more = False  # before we look: a bell that rings meanwhile sets it again
                before = self.session.sent
                newest, found = await rows(self._news)(before, limit)
                self.session.fence(newest)
                for seq, text in found:
                    await self.send(self.session.pass_on(seq, text))
                if found:
                    self.passed_on.append((before, self.session.sent, time.monotonic()))
                    self.noting.ring()  # beside the sending: the next rows do not wait for the disk
                self.may_have_more |= len(found) == limit

    def _news(self, sent: int, limit: int) -> tuple[int, list[tuple[int, str]]]:
        """The newest life and the rows for it, in one thread: to open a connection costs more than both."""
        newest = intake.newest_life(self.run).n
        own = newest == self.life.n
        return newest, delivery.peek(self.run, self.epoch, sent, limit) if own else []

    async def decision_made(self, event):
        """A doorbell: deliver at once, then look. A thousand decisions in a row do not make a thousand looks."""
        self.delivering.ring()

    async def _deliver(self) -> None:
        async with self._minded():
            made = await rows(delivery.store)(self.run)
            await self._look()
            try:
                await rows(paying.pay)(self.run, made)
            except Exception:  # the rows are out, and the sweep counts them: no reason to close the socket
                log.exception("run %s: what its rows pay was not counted", self.run.pk)

    async def rows_stored(self, event):
        await self._look()

    async def stream_taken(self, event):
        """A newer socket answered a resume; if it is of our own life, it holds the stream now."""
        if event["channel"] != self.channel_name and self.life:
            newer = ProtocolError("stream", got="a newer socket", expected="one job a run", code=CloseCode.FENCED)
            await self.refuse(newer)

    async def _look(self) -> None:
        try:
            if self.life and self.session.room <= 0:  # else `flush` asks with the rows
                newest = await rows(intake.newest_life)(self.run)
                self.session.fence(newest.n)
            self.may_have_more = True
            await self.flush()
        except ProtocolError as broken:
            await self.refuse(broken)
        except GONE:
            log.info("run %s: the job's socket closed while rows were sent; they wait for its resume", self.run.pk)

    async def _glance(self) -> None:
        async with self._minded():
            await self._look()

    async def _keep_looking(self) -> None:
        """Doorbells may be lost and tokens revoked; the rows say so. A job that reads nothing must not stop this."""
        good = MachineToken.objects.filter(pk=self.token.pk, revoked_at=None)
        while self.session.state is not ServerState.CLOSED:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                if await rows(good.exists)():
                    self.glancing.ring()
                    continue
            except Exception:  # the database is away for a moment: look again
                log.exception("run %s: the job's socket, looking", self.run.pk)
                continue
            revoked = ProtocolError("token", got="revoked", expected="a valid one", code=CloseCode.TOKEN)
            await self.refuse(revoked)
            return

    async def refuse(self, broken: ProtocolError) -> None:
        self.session.state = (
            ServerState.CLOSED
        )  # whatever else comes on this socket is refused, even if it cannot close
        with contextlib.suppress(*GONE, TimeoutError):  # a job that reads nothing is not waited for
            async with asyncio.timeout(REFUSE_WITHIN_S):
                await self.send(encode(Error(code=int(broken.code), message=str(broken)[:1000])))
                await self.close(code=int(broken.code), reason=broken.reason)


class PageConsumer(AsyncWebsocketConsumer):
    """A browser's socket: it hears that a run changed and asks for the page's parts again."""

    async def connect(self):
        runs = await rows(self._visible_runs)()
        self.groups_heard = [wake.pages_of(pk) for pk in runs or ()]
        await self.accept()
        if runs is None:
            await self.close(code=int(CloseCode.NO_RUN))  # after the handshake, or the browser cannot read the code
            return
        for group in self.groups_heard:
            await self.channel_layer.group_add(group, self.channel_name)
        await self.page_changed()  # what changed between the page and its socket was not heard

    def _visible_runs(self) -> list[int] | None:
        """The runs to hear of; None where this user may not listen."""
        runs = Run.objects.visible_to(self.scope["user"]).filter(public_id=self.scope["url_route"]["kwargs"]["run"])
        return list(runs.values_list("pk", flat=True)) or None

    async def disconnect(self, code):
        for group in self.groups_heard:
            await self.channel_layer.group_discard(group, self.channel_name)

    async def page_changed(self, event=None):
        await self.send('{"type": "changed"}')


class QueueConsumer(PageConsumer):
    """The queue's socket: it hears of every run of one's teams, of live and new ones first where there are many."""

    def _visible_runs(self) -> list[int] | None:
        user = self.scope["user"]
        if not user.is_authenticated:
            return None
        is_live = Case(When(kind=Run.Kind.LIVE, then=1), default=0)
        runs = Run.objects.visible_to(user).order_by(is_live.desc(), "-pk")  # an import's groups are held too
        return list(runs.values_list("pk", flat=True)[:QUEUE_RUNS])
