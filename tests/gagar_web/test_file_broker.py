from threading import Event, Thread

from kombu import Connection

from gagar_web import file_broker

assert file_broker.SCHEME == "files"


def connect(folder):
    for name in ("messages", "control"):
        (folder / name).mkdir(exist_ok=True)
    options = {
        "data_folder_in": str(folder / "messages"),
        "data_folder_out": str(folder / "messages"),
        "control_folder": str(folder / "control"),
    }
    return Connection("files://localhost", transport_options=options)


def test_half_a_message_has_a_name_that_no_reader_looks_for(tmp_path):
    with connect(tmp_path) as connection, connection.SimpleQueue("whole") as queue:
        queue.put({"number": 1})
        [whole] = (tmp_path / "messages").iterdir()
        whole.with_name(f"0{whole.name}.part").write_text('{"half": ')
        assert queue.get(timeout=5).payload == {"number": 1}


def test_messages_arrive_once_each_while_they_are_written(tmp_path):
    wanted, got, done = 600, [], Event()

    def read():
        with connect(tmp_path) as connection, connection.SimpleQueue("busy") as queue:
            while len(got) < wanted and not done.is_set():
                try:
                    message = queue.get(timeout=0.2)
                except queue.Empty:
                    continue
                got.append(message.payload)
                message.ack()

    reader = Thread(target=read)
    with connect(tmp_path) as connection, connection.SimpleQueue("busy") as queue:
        reader.start()  # the queue is bound: kombu's state is shared in a process and would let it publish into nothing
        for number in range(wanted):
            queue.put({"number": number, "padding": "x" * 4000})
    reader.join(60)
    done.set()
    assert sorted(message["number"] for message in got) == list(range(wanted))
    assert not list((tmp_path / "messages").iterdir()), "nothing is left behind"


def test_a_table_is_read_whole_while_others_bind(tmp_path):
    wanted, failed = 120, []

    def bind(first):
        try:
            with connect(tmp_path) as connection:
                channel = connection.channel()
                for number in range(first, wanted, 4):
                    channel._queue_bind("bells", f"key-{number}", "", f"queue-{number}")
                    channel.get_table("bells")
        except Exception as failure:  # a thread's own assertion would be lost
            failed.append(failure)

    threads = [Thread(target=bind, args=[first]) for first in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    with connect(tmp_path) as connection:
        table = connection.channel().get_table("bells")
    assert not failed and len(table) == len({row.queue for row in table}) == wanted
