"""The server's session on paper: no socket, no database."""

from dataclasses import replace

import pytest

from training_bridge.protocol.estimator import check_estimator
from training_bridge.protocol.messages import (
    CloseCode,
    Durable,
    Estimator,
    Metrics,
    Noted,
    ProtocolError,
    Receipt,
    Received,
    Resume,
    Want,
    Welcome,
)
from training_bridge.protocol.sessions import NewEpoch, ServerSession, ServerState, StreamFacts
from training_bridge.protocol.wire import decode_from_server, encode

DIGEST = "d" * 64


def make_facts(*, life=2, epoch=1, head_seq=10, mode="normal", digest=DIGEST, noted=0) -> StreamFacts:
    return StreamFacts(life=life, epoch=epoch, head_seq=head_seq, mode=mode, digest=digest, noted=noted)


def make_resume(*, life=2, epoch=1, after_seq=4, digest=DIGEST, estimator=None) -> str:
    estimator = estimator or Estimator()
    return encode(Resume(life=life, epoch=epoch, after_seq=after_seq, digest=digest, estimator=estimator))


def make_streaming(*, after_seq=4, noted=0, window=256, head_seq=10) -> ServerSession:
    session = ServerSession(window)
    session.receive(make_resume(after_seq=after_seq, digest=DIGEST if after_seq else None))
    assert session.answer(make_facts(noted=noted, head_seq=head_seq)) is None
    session.replies()
    return session


def sent(session: ServerSession) -> list:
    return [decode_from_server(text) for text in session.replies()]


def test_a_resume_is_answered_and_the_rows_after_it_may_go():
    session = ServerSession()
    assert session.room == 0
    assert session.receive(make_resume()).after_seq == 4
    assert session.answer(make_facts()) is None
    welcome = Welcome(epoch=1, head_seq=10, estimator=Estimator(), window=256, mode="normal", noted=0)
    assert sent(session) == [welcome]
    assert (session.sent, session.room) == (4, 256)
    assert session.pass_on(5, "the stored text") == "the stored text"
    assert sent(session) == []


@pytest.mark.parametrize(
    ("resume", "facts", "reason"),
    [
        ({"after_seq": 11}, {}, "ends at row 10"),
        ({"digest": "e" * 64}, {}, "another one"),
        ({"digest": None}, {"digest": None}, "another one"),
        ({"epoch": 2}, {}, "epoch 2"),
        ({"epoch": 1}, {"epoch": 2}, "epoch 1"),
    ],
)
def test_a_cursor_that_does_not_belong_here_needs_a_new_epoch_and_starts_at_its_first_row(resume, facts, reason):
    session = ServerSession()
    session.receive(make_resume(**resume))
    needed = session.answer(make_facts(**facts))
    assert isinstance(needed, NewEpoch) and reason in needed.reason
    assert sent(session) == [] and session.room == 0
    assert session.answer(make_facts(epoch=3, head_seq=2, digest=None)) is None
    assert sent(session)[0].epoch == 3
    session.pass_on(1, "row 1")


def test_opening_no_new_epoch_is_the_callers_mistake():
    session = ServerSession()
    session.receive(make_resume(after_seq=11))
    session.answer(make_facts())
    with pytest.raises(ValueError, match="above 1"):
        session.answer(make_facts())


def test_a_job_without_a_cursor_gets_the_current_epoch_from_its_start():
    session = ServerSession()
    session.receive(make_resume(epoch=0, after_seq=0, digest=None))
    assert session.answer(make_facts(epoch=7, digest=None)) is None
    session.pass_on(1, "row 1")


@pytest.mark.parametrize(("newest", "code"), [(3, CloseCode.FENCED), (1, CloseCode.UNKNOWN_LIFE)])
def test_a_life_that_is_not_the_newest_is_fenced_and_one_that_was_never_issued_needs_another(newest, code):
    session = ServerSession()
    session.receive(make_resume(life=2))
    with pytest.raises(ProtocolError) as refused:
        session.answer(make_facts(life=newest))
    assert refused.value.code == code and session.state is ServerState.CLOSED


def test_a_new_epoch_is_above_every_one_the_job_has_seen():
    session = ServerSession()
    session.receive(make_resume(epoch=5))
    needed = session.answer(make_facts(epoch=2))
    assert isinstance(needed, NewEpoch) and needed.above == 5
    with pytest.raises(ValueError, match="above 5"):
        session.answer(make_facts(epoch=5, head_seq=9))


def test_a_trainer_that_counts_on_another_cap_is_refused_and_any_other_is_told_the_runs():
    for cap, run_has, words in ((1.5, 2.0, "2, as this run has it"), (1.5, None, "no bound")):
        session = ServerSession()
        session.receive(make_resume(estimator=Estimator(cap=cap)))
        with pytest.raises(ProtocolError, match=words) as refused:
            session.answer(replace(make_facts(), cap=run_has))
        assert refused.value.code == CloseCode.ESTIMATOR and session.state is ServerState.CLOSED
    for cap in (None, 1.5):
        session = ServerSession()
        session.receive(make_resume(estimator=Estimator(cap=cap, shaped=True)))
        session.answer(replace(make_facts(), cap=1.5))
        assert sent(session)[0].estimator == Estimator(cap=1.5, shaped=True)


def test_a_newer_life_fences_a_running_stream():
    session = make_streaming()
    session.fence(2)
    with pytest.raises(ProtocolError) as refused:
        session.fence(3)
    assert refused.value.code == CloseCode.FENCED and session.room == 0


@pytest.mark.parametrize(
    "estimator",
    [
        Estimator(std="ddof1"),
        Estimator(std="ddof0"),
        Estimator(std="batch"),
        Estimator(baseline="leave_one_out"),
        Estimator(baseline="none", space="reward"),
        Estimator(clip=10.0),
        Estimator(clip=0.0),
        Estimator(eps=1e-6),
        Estimator(space="logits"),
    ],
)
def test_an_estimator_that_breaks_the_numbers_is_refused_by_name(estimator):
    session = ServerSession()
    with pytest.raises(ProtocolError, match=r"estimator\.") as refused:
        session.receive(make_resume(estimator=estimator))
    assert refused.value.code == CloseCode.ESTIMATOR


@pytest.mark.parametrize(
    "estimator", [Estimator(), Estimator(space="reward"), Estimator(baseline="none"), Estimator(loss="token mean")]
)
def test_an_estimator_that_keeps_the_numbers_is_accepted(estimator):
    check_estimator(estimator)


def test_nothing_is_taken_before_the_resume_and_no_second_resume():
    for message in (Received(seq=0), Want(life=2, groups=(), within_s=1), Metrics(n=1, step=1, values={})):
        with pytest.raises(ProtocolError, match="awaiting resume"):
            ServerSession().receive(encode(message))
    session = make_streaming()
    with pytest.raises(ProtocolError, match="while streaming"):
        session.receive(make_resume())
    assert session.state is ServerState.CLOSED


def test_the_credit_window_is_opened_by_what_the_job_has_received():
    session = make_streaming(window=3)
    for seq in (5, 6, 7):
        session.pass_on(seq, "row")
    assert session.room == 0
    session.receive(encode(Received(seq=6)))
    assert session.room == 2
    session.receive(encode(Received(seq=5)))  # cumulative: an older one takes nothing back
    assert session.room == 2
    session.pass_on(8, "row")
    session.pass_on(9, "row")
    with pytest.raises(ProtocolError) as refused:
        session.pass_on(10, "row")
    assert refused.value.code == CloseCode.WINDOW


def test_a_gap_in_the_rows_is_never_sent():
    session = make_streaming()
    with pytest.raises(ProtocolError) as refused:
        session.pass_on(6, "row")
    assert refused.value.code == CloseCode.GAP


@pytest.mark.parametrize("message", [Received(seq=5), Durable(seq=5)])
def test_an_acknowledgement_from_the_future_is_refused(message):
    session = make_streaming()
    with pytest.raises(ProtocolError) as refused:
        session.receive(encode(message))
    assert refused.value.code == CloseCode.GAP


def test_durable_follows_received_and_is_told_once():
    session = make_streaming()
    session.pass_on(5, "row")
    with pytest.raises(ProtocolError):
        make_streaming().receive(encode(Durable(seq=5)))
    session.receive(encode(Received(seq=5)))
    assert session.receive(encode(Durable(seq=5))) == Durable(seq=5)
    assert session.receive(encode(Durable(seq=5))) is None


def test_numbered_messages_are_taken_once_noted_when_stored_and_noted_again_when_doubled():
    session = make_streaming(noted=3)
    receipt = Receipt(n=4, life=1, group="g", version=1, status="not_used", step=1)
    metrics = Metrics(n=5, step=1, values={"loss": "NaN"})
    assert session.receive(encode(receipt)) == receipt
    assert session.receive(encode(metrics)) == metrics
    assert session.receive(encode(receipt)) is None  # on its way into the database: no note yet
    assert sent(session) == []
    session.note(5)
    assert sent(session) == [Noted(n=5)]
    assert session.receive(encode(receipt)) is None
    assert sent(session) == [Noted(n=5)]
    with pytest.raises(ValueError, match="only up to 5"):
        session.note(6)


def test_a_gap_in_the_numbered_messages_is_refused():
    session = make_streaming(noted=3)
    with pytest.raises(ProtocolError) as refused:
        session.receive(encode(Metrics(n=5, step=1, values={})))
    assert refused.value.code == CloseCode.GAP


def test_a_want_or_a_receipt_of_a_foreign_life_is_refused():
    with pytest.raises(ProtocolError, match=r"want\.life"):
        make_streaming().receive(encode(Want(life=1, groups=("g",), within_s=1)))
    with pytest.raises(ProtocolError, match=r"receipt\.life"):
        make_streaming().receive(encode(Receipt(n=1, life=3, group="g", version=1, status="applied", step=1)))


def test_bad_input_closes_the_session():
    session = make_streaming()
    with pytest.raises(ProtocolError):
        session.receive("{")
    assert session.state is ServerState.CLOSED and session.room == 0
    with pytest.raises(ProtocolError):
        session.receive(encode(Received(seq=4)))
