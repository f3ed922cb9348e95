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
    reader.start()
    with connect(tmp_path) as connection, connection.SimpleQueue("busy") as queue:
        for number in range(wanted):
            queue.put({"number": number, "padding": "x" * 4000})
    reader.join(60)
    done.set()
    assert sorted(message["number"] for message in got) == list(range(wanted))
    assert not list((tmp_path / "messages").iterdir()), "nothing is left behind"
