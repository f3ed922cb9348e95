"""The job's session and its outbox on paper, alone and against the server's session."""

import json

import pytest

from training_bridge.protocol.client_session import ClientSession, Position
from training_bridge.protocol.messages import (
    Advantages,
    CloseCode,
    Control,
    Durable,
    Error,
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
from training_bridge.protocol.outbox import Outbox
from training_bridge.protocol.sessions import ServerSession, StreamFacts
from training_bridge.protocol.wire import decode_from_job, digest_of, encode


def make_session(*, position=None, outbox=None, life=2) -> ClientSession:
    return ClientSession(
        life=life,
        position=position or Position(),
        estimator=Estimator(),
        outbox=outbox if outbox is not None else Outbox(),
    )


def make_welcomed(*, position=None, outbox=None, epoch=1, head_seq=None, mode="normal", noted=None) -> ClientSession:
    session = make_session(position=position, outbox=outbox)
    head_seq = session.position.seq if head_seq is None else head_seq
    said = {"estimator": Estimator(), "window": 256, "mode": mode, "noted": noted}
    session.receive(encode(Welcome(epoch=epoch, head_seq=head_seq, **said)))
    return session


def make_row(seq: int, *, group="g", version=1, life=2) -> str:
    return encode(
        Advantages(seq=seq, group=group, life=life, version=version, step=1, regime="fallback", train=True, rows=())
    )


def make_receipt(*, life=2, group="g", status="applied") -> Receipt:
    return Receipt(n=1, life=life, group=group, version=1, status=status, step=1)


def sent(texts: list[str]) -> list:
    return [decode_from_job(text) for text in texts]


def test_the_hello_says_where_the_job_stands_and_nothing_goes_before_the_welcome():
    session = make_session(position=Position(3, 7, "a" * 64))
    hello = decode_from_job(session.hello())
    assert hello == Resume(life=2, epoch=3, after_seq=7, digest="a" * 64, estimator=Estimator())
    session.want(("g",), 5.0)
    session.outbox.put(make_receipt())
    assert session.due() == []
    with pytest.raises(ProtocolError, match="first message"):
        session.receive(make_row(8))


def test_rows_move_the_position_with_the_digest_of_the_text_and_are_acknowledged_cumulatively():
    session = make_welcomed()
    text = make_row(2)
    session.receive(make_row(1))
    assert session.receive(text).seq == 2
    assert session.position == Position(1, 2, digest_of(text))
    assert sent(session.due()) == [Received(seq=2)]
    assert session.due() == []


def test_a_row_seen_before_is_passed_over_and_a_gap_is_an_error():
    session = make_welcomed(position=Position(1, 4, "a" * 64))
    assert session.receive(make_row(4)) is None
    with pytest.raises(ProtocolError) as gap:
        session.receive(make_row(6))
    assert gap.value.code == CloseCode.GAP
    assert session.position.seq == 4


def test_a_new_epoch_starts_at_its_first_row():
    session = make_welcomed(position=Position(1, 4, "a" * 64), epoch=2)
    assert session.position == Position(2, 0, None)
    assert session.receive(make_row(1)).seq == 1


def test_a_stream_that_ends_before_the_cursor_starts_over_even_under_the_same_epoch():
    session = make_welcomed(position=Position(2, 4, "a" * 64), epoch=2, head_seq=1)
    assert session.receive(make_row(1)).seq == 1


def test_a_restored_server_that_noted_less_is_sent_on_from_there():
    outbox = Outbox()
    for group in "abcde":
        outbox.put(make_receipt(group=group))
    make_welcomed(outbox=outbox, noted=0).due()
    outbox.noted(3)
    session = make_welcomed(outbox=outbox, noted=1)  # of 3 that it had noted
    assert session.outbox_lost == 2
    outbox.put(make_receipt(group="f"))
    assert [(m.n, m.group) for m in sent(session.due())] == [(2, "d"), (3, "e"), (4, "f")]


def test_a_note_that_was_lost_with_the_socket_is_made_good_by_the_welcome():
    outbox = Outbox()
    for group in "abc":
        outbox.put(make_receipt(group=group))
    make_welcomed(outbox=outbox, noted=0).due()
    session = make_welcomed(outbox=outbox, noted=2)
    assert session.outbox_lost == 0 and [(m.n, m.group) for m in sent(session.due())] == [(3, "c")]


def test_a_server_that_noted_what_was_never_sent_has_given_our_life_to_another_process():
    with pytest.raises(ProtocolError) as refused:
        make_welcomed(noted=1)
    assert refused.value.code == CloseCode.UNKNOWN_LIFE


def test_a_second_life_numbers_from_one_and_takes_what_was_in_flight_with_it():
    outbox = Outbox()
    for group in "abc":
        outbox.put(make_receipt(life=3, group=group))
    make_welcomed(outbox=outbox, noted=0).due()
    outbox.noted(1)
    outbox.put(make_receipt(life=2, group="older"))
    outbox.adopt(3, 5)
    again = sent(make_welcomed(outbox=outbox, noted=0).due())
    assert [(m.n, m.life, m.group) for m in again] == [(1, 5, "b"), (2, 5, "c"), (3, 2, "older")]


def test_a_lost_life_that_comes_back_under_its_number_goes_by_what_the_welcome_says():
    outbox = Outbox()
    for group in "abc":
        outbox.put(make_receipt(life=3, group=group))
    make_welcomed(outbox=outbox, noted=0).due()
    outbox.noted(2)  # by the restored server, before we heard that it had issued us our own number
    outbox.adopt(3, 3)
    assert [(m.n, m.group) for m in sent(make_welcomed(outbox=outbox, noted=2).due())] == [(3, "c")]


def test_old_controls_are_history_and_new_ones_count():
    session = make_welcomed(head_seq=2, mode="normal")
    session.receive(encode(Control(seq=1, mode="outcome_only")))
    assert session.mode == "normal"  # row 2 lifted it, as the welcome says
    session.receive(encode(Control(seq=2, mode="normal")))
    session.receive(encode(Control(seq=3, mode="outcome_only")))
    assert session.mode == "outcome_only"


def test_durable_and_want_are_told_once_a_socket():
    session = make_welcomed(position=Position(1, 4, "a" * 64))
    session.want(("g1", "g2"), 2.5)
    assert sent(session.due(durable=4)) == [Durable(seq=4), Want(life=2, groups=("g1", "g2"), within_s=2.5)]
    assert session.due(durable=4) == []
    assert session.due(durable=9) == []  # more than is held: of another epoch


def test_what_is_not_noted_is_sent_again_from_the_first():
    outbox = Outbox()
    session = make_welcomed(outbox=outbox)
    outbox.put(make_receipt(group="a"))
    outbox.put(Metrics(n=1, step=1, values={"loss": 0.5}))
    outbox.put(make_receipt(group="b"))
    assert [message.n for message in sent(session.due())] == [1, 2, 3]
    session.receive(encode(Noted(n=1)))
    again = sent(make_welcomed(outbox=outbox).due())
    assert [message.n for message in again] == [2, 3]
    assert again[0].group == "b"  # receipts before metrics
    assert again[1].values == {"loss": 0.5}


def test_a_note_of_what_was_never_sent_is_an_error():
    session = make_welcomed()
    with pytest.raises(ProtocolError) as refused:
        session.receive(encode(Noted(n=1)))
    assert refused.value.code == CloseCode.GAP


def test_the_servers_error_carries_its_code():
    with pytest.raises(ProtocolError) as refused:
        make_session().receive(encode(Error(code=4410, message="estimator.std")))
    assert refused.value.code == CloseCode.ESTIMATOR


def test_only_so_many_messages_are_in_flight_and_the_rest_waits():
    outbox = Outbox(in_flight=2)
    for group in "abc":
        outbox.put(make_receipt(group=group))
    assert len(outbox.due()) == 2
    assert outbox.due() == []
    outbox.noted(1)
    assert [message.n for message in sent(outbox.due())] == [3]


def test_a_receipt_of_a_group_the_server_does_not_know_yet_waits_and_holds_nothing_else_up():
    outbox = Outbox()
    for group in "abc":
        outbox.put(make_receipt(group=group))
    outbox.put(Metrics(n=1, step=1, values={}))
    sent_now = sent(outbox.due(undeclared={"a", "c"}))
    assert [(m.n, getattr(m, "group", "metrics")) for m in sent_now] == [(1, "b"), (2, "metrics")]
    assert [(m.n, m.group) for m in sent(outbox.due(undeclared={"c"}))] == [(3, "a")]
    assert [(m.n, m.group) for m in sent(outbox.due())] == [(4, "c")]


def test_a_full_outbox_loses_the_oldest_metrics_first_and_counts_them():
    outbox = Outbox(limit=2)
    outbox.put(Metrics(n=1, step=1, values={}))
    outbox.put(make_receipt(group="a"))
    outbox.put(make_receipt(group="b"))
    outbox.put(make_receipt(group="c"))
    assert outbox.dropped == 2
    assert [message.group for message in sent(outbox.due())] == ["b", "c"]


def test_a_checkpoint_holds_what_is_not_noted_and_the_next_life_numbers_it_anew():
    outbox = Outbox()
    for group in "abc":
        outbox.put(make_receipt(group=group))
    outbox.due()
    outbox.noted(2)
    outbox.put(make_receipt(life=-1, group="never-issued"))
    outbox.put(Metrics(n=1, step=4, values={"kl": "NaN"}))
    saved = json.loads(json.dumps(outbox.unnoted()))
    after = Outbox()
    after.restore(saved)
    assert [(message.n, getattr(message, "group", "metrics")) for message in sent(after.due())] == [
        (1, "c"),
        (2, "metrics"),
    ]


def test_receipts_of_the_time_before_the_life_get_the_issued_one():
    outbox = Outbox()
    outbox.put(make_receipt(life=-1))
    outbox.put(make_receipt(life=3))
    outbox.adopt(-1, 4)
    assert [message.life for message in sent(outbox.due())] == [4, 3]


def test_both_sessions_agree_over_a_lost_socket():
    stored = [make_row(seq) for seq in range(1, 8)]
    outbox, position, notes = Outbox(), Position(), []
    outbox.put(make_receipt())
    for rows_before_the_loss in (3, 4):
        server, client = ServerSession(window=2), make_session(position=position, outbox=outbox)
        resume = server.receive(client.hello())
        digest = digest_of(stored[resume.after_seq - 1]) if resume.after_seq else None
        server.answer(StreamFacts(life=2, epoch=1, head_seq=7, mode="normal", digest=digest, noted=len(notes)))
        for text in server.replies():
            client.receive(text)
        for _ in range(rows_before_the_loss):
            client.receive(server.pass_on(server.sent + 1, stored[server.sent]))
            for text in client.due():
                fresh = server.receive(text)
                notes += [fresh] if isinstance(fresh, Receipt) else []
        position = client.position
    assert position == Position(1, 7, digest_of(stored[6]))
    assert [receipt.n for receipt in notes] == [1]
