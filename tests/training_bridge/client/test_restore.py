"""A server whose database was restored from an older backup, under a job that goes on."""

from tests.training_bridge.client.test_faults import declare_four


def one_step(server, gagar, key, *, step):
    group = declare_four(gagar, key, step=step)
    server.wait(lambda: (server.lives, f"{key}-3") in server.trajectories)
    server.decide(key)
    gagar.applied(gagar.freeze(step, [group], within_s=20))
    gagar.log(step, {"loss": float(step)})
    server.wait(lambda: "applied" in server.ledger().get((server.lives, key, 1), ()))
    server.wait(lambda: not len(gagar._shared.outbox))


def backup(server) -> dict:
    kept = ("groups", "trajectories", "numbers", "rows", "receipts", "metrics")
    return {"lives": server.lives, "epoch": server.epoch} | {name: getattr(server, name).copy() for name in kept}


def restore(server, kept: dict) -> None:
    with server.lock:
        server.cable.unplug()
        for name, value in kept.items():
            setattr(server, name, value if isinstance(value, int) else value.copy())
    server.cable.plug()


def test_a_running_job_goes_on_where_the_restored_server_stands(server, connect):
    with connect() as gagar:
        one_step(server, gagar, "g1", step=1)
        kept = backup(server)
        one_step(server, gagar, "g2", step=2)
        gagar.log(2, {"entropy": 1.0})
        server.wait(lambda: server.numbers[1] == 5)
        restore(server, kept)  # it had noted 5 messages and knows of 2
        one_step(server, gagar, "g3", step=3)
        # dense, each once: after what it knows both uses are told again, then g3 and its metrics
        server.wait(lambda: server.numbers[1] == len(server.receipts) + len(server.metrics))
        assert gagar.life == 1
        assert server.epoch == 2 and gagar._buffer.position.epoch == 2
    assert not any("4411" in problem for problem in gagar.problems)
    assert {*server.ledger()[1, "g2", 1]} == {*server.ledger()[1, "g3", 1]} == {"applied"}


def test_an_epoch_that_the_job_has_seen_before_the_restore_is_never_used_again(server, connect):
    with connect() as gagar:
        one_step(server, gagar, "g1", step=1)
        kept = backup(server)
        with server.lock:  # an epoch of before the restore, with more rows than the next will have
            server.rows = []
            server.cable.cut()
        server.wait(lambda: gagar._buffer.position.epoch == 2)
        for n in range(5):
            server.decide(f"old-{n}", life=1, advantages={"x": 0.0})
        server.wait(lambda: gagar._buffer.position.seq == 5)
        restore(server, kept)
        one_step(server, gagar, "g3", step=3)
        assert gagar._buffer.position.epoch == 3


def test_a_job_whose_life_the_restored_server_never_issued_gets_another_and_loses_no_step(server, connect):
    with connect() as older:
        one_step(server, older, "g0", step=1)
    kept = backup(server)
    with connect() as gagar:
        one_step(server, gagar, "g1", step=1)
        undecided = declare_four(gagar, "g2", step=2)
        server.wait(lambda: (2, "g2-3") in server.trajectories)
        restore(server, kept)
        server.wait(lambda: server.lives == 2)
        [got] = gagar.freeze(2, [undecided], within_s=20, hold_steps=5).sets
        assert (got.version, got.reason) == (0, "lost_by_server")
        one_step(server, gagar, "g3", step=3)
        assert gagar.life == 2 and gagar.online
        with gagar.checkpoint() as cursor:
            pass
    assert [entry[1] for entry in cursor["applied"]] == ["g1", "g3"]
    assert any("had lost the life" in problem for problem in gagar.problems)
