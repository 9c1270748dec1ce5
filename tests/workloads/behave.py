"""A workload for tests that does, by the number of devices it is asked for, what BEHAVIOURS lists."""

import ctypes
import itertools
import json
import os
import signal
import socket
import sys
import time

from common import events


def ok(emitter):
    emitter.environment(framework="none", versions={"none": "1"}, devices=[{"kind": "cpu", "name": "test"}])
    measures(emitter)


def measures(emitter):
    with emitter.phase("measure"):
        for index in range(3):
            emitter.sample("measure", index, 1, 10, 0.5)
    emitter.metric("answer", 42, "1")


def unsupported(emitter):
    raise events.Unsupported("this case cannot exist here")


def out_of_memory(emitter):
    raise MemoryError("batch 2048 did not fit")


def raises(emitter):
    raise KeyError("a bug")


def dies(emitter):
    ctypes.string_at(0)  # a real fault: as process 1 of a container a signal to itself would be ignored


def leaves(emitter):
    os._exit(0)


def leaves_a_word(emitter):
    os.write(2, b"Traceback\nModuleNotFoundError: No module named 'nowhere'\n \n")
    os._exit(3)


def garbage(emitter):
    os.write(1, b'\x1e{"event":"sample"\n\x1e\x00\xff\xfe\n\x1e{"event":"nonsense","seq":0,"t":0,"rank":0}\n')
    os.write(2, b"\xff\xfenot text\n")
    ok(emitter)


def half_an_event(emitter):
    ok(emitter)
    os.write(1, b'\x1e{"event":"finished","seq":')
    os._exit(0)


def says_a_file(emitter):
    """Writes what a test has put into the file `said` beside this, and measures."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "said"), "rb") as file:
        said = file.read()
    for begin in range(0, len(said), 1 << 15):
        os.write(1, said[begin : begin + (1 << 15)])
    measures(emitter)


def phases_without_end(emitter):
    while True:
        with emitter.phase("measure"):
            pass


def metrics_without_end(emitter):
    while True:
        emitter.metric("loss", 0.5, "1")


def samples_without_end(emitter):
    with emitter.phase("measure"):
        for index in itertools.count():
            emitter.sample("measure", index, 1, 1, 0.5)


def loses_a_sample(emitter):
    with emitter.phase("measure"):
        for index in (0, 1, 3):
            emitter.sample("measure", index, 1, 10, 0.5)


def doubles_every_event(emitter):
    write = emitter._write

    def twice(body):
        write(body)
        os.write(1, events._encode(body))

    emitter._write = twice
    ok(emitter)
    emitter._write = write


def goes_on_after_its_end(emitter):
    ok(emitter)
    emitter.finished()
    emitter.metric("answer", 43, "1")
    emitter.failed("error", "E", "not any more")


def binary(emitter):
    for _ in range(64):
        os.write(1, os.urandom(1 << 16))
    os.write(1, b"\n")
    ok(emitter)


def flood(emitter):
    line = b"x" * 1023 + b"\n"
    for _ in range(1024):
        os.write(1, line * 1024)
    ok(emitter)


def pours(emitter):
    """Five gigabytes, faster than a disk would take them."""
    for _ in range(4):
        line = b"y" * 1023 + b"\n"
        for _ in range(1024):
            os.write(1, line * 1024)
    flood(emitter)


def ignores_signals(emitter):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGTERM)
    sleeps(emitter)


def fills_its_folder(emitter):
    """Writes into its home until there is no room."""
    with open(os.path.join(os.environ["HOME"], "filled"), "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()


def sleeps(emitter):
    with emitter.phase("measure"):
        emitter.sample("measure", 0, 1, 10, 0.5)
        time.sleep(600)


def burns(emitter):
    with emitter.phase("measure"):
        emitter.sample("measure", 0, 1, 10, 0.5)
        while True:
            pass


def computes(emitter):
    with emitter.phase("measure"):
        for index in range(3):
            end = time.time() + 0.4
            while time.time() < end:
                pass
            emitter.sample("measure", index, 1, 10, 0.4)


def takes_its_time(emitter):
    with emitter.phase("measure"):
        for index in range(20):
            begin = time.time()
            time.sleep(0.2)
            emitter.sample("measure", index, 1, 10, time.time() - begin)


def takes_memory(emitter):
    hoard = []
    while True:
        hoard.append(bytearray(os.urandom(1 << 20) * 16))


def short_sleep(emitter):
    time.sleep(2)
    ok(emitter)


def silent_for_long(emitter):
    time.sleep(8)
    ok(emitter)


def escapes(emitter):
    """What a hardened container must refuse; each attempt is told as a metric: 1 it was refused, 0 it worked."""
    attempts = {"network": network, "write": write_outside, "root": become_root, "mount": write_mount}
    for name, attempt in attempts.items():
        try:
            attempt()
            refused = 0
        except (OSError, PermissionError) as error:
            print(name, type(error).__name__, error)
            refused = 1
        emitter.metric("refused_" + name, refused, "1")
    with open("/tmp/allowed", "w") as file:
        file.write("x")
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
    emitter.metric("capabilities", int(status["CapEff"], 16), "1")
    emitter.metric("no_new_privileges", int(status["NoNewPrivs"]), "1")
    emitter.metric("user", os.getuid(), "1")


def network():
    interfaces = [name for _, name in socket.if_nameindex() if name != "lo"]
    if interfaces:
        raise AssertionError("there is a network interface: {}".format(interfaces))
    socket.create_connection(("192.0.2.1", 80), timeout=3)


def write_outside():
    with open("/opt/written", "w") as file:
        file.write("x")


def become_root():
    os.setuid(0)


def write_mount():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "written"), "w") as file:
        file.write("x")


def skipped(emitter):
    raise events.Skipped("100 epochs would take 3e+04 s")


def tells_what_was_asked(emitter):
    """Prints its argument, and emits the budget and the size of the data set it was given (-1: none)."""
    print("asked", sys.argv[1])
    asked = json.loads(sys.argv[1])
    emitter.metric("budget_s", asked["budget_s"], "s")
    emitter.metric("data_bytes", os.path.getsize(asked["data"]["file"]) if asked["data"] else -1, "B")


def tells_its_variables(emitter):
    for name in sorted(os.environ):
        print("variable", name, os.environ[name])
    ok(emitter)


def leaks(emitter):
    """Facts and a reason with the passwords and tokens of somebody.

    They are put together here: an archive holds this file, and must not look as if it held a secret.
    """
    word, colon, equals = "hunter2", ":", "="
    address = "https://ada{}{}@proxy.example:3128".format(colon, word)
    variable = "HF_TOKEN{}{}_{}".format(equals, "hf", 30 * "a")
    emitter.environment(framework="none", versions={"none": "1"}, flags={"proxy": address, variable: 1})
    emitter.metric("seen by " + address, 1, "token" + equals + word)
    more = "AWS_SECRET_ACCESS_KEY" + equals + word + ", Authorization" + colon + " Bearer " + 2 * word
    raise ValueError("{} refused {}".format(address, more))


def leaves_a_daemon(emitter):
    start_daemon()
    ok(emitter)


def waits_with_a_daemon(emitter):
    start_daemon()
    sleeps(emitter)


def start_daemon():
    """Starts a program that leaves session and parent, and works without end; its argument tells it from others."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork() == 0:
        code = "import signal\nfor one in (1, 2, 15): signal.signal(one, signal.SIG_IGN)\nwhile True: pass"
        place = os.path.dirname(os.path.abspath(__file__))
        os.execv(sys.executable, [sys.executable, "-c", code, "daemon of " + place])  # noqa: S606
    os._exit(0)


BEHAVIOURS = (
    ok,
    unsupported,
    out_of_memory,
    raises,
    dies,
    leaves,
    garbage,
    half_an_event,
    binary,
    flood,
    sleeps,
    takes_memory,
    short_sleep,
    escapes,
    silent_for_long,
    skipped,
    tells_what_was_asked,
    says_a_file,
    phases_without_end,
    metrics_without_end,
    samples_without_end,
    loses_a_sample,
    doubles_every_event,
    goes_on_after_its_end,
    burns,
    tells_its_variables,
    leaks,
    leaves_a_daemon,
    waits_with_a_daemon,
    pours,
    ignores_signals,
    fills_its_folder,
    leaves_a_word,
    computes,
    takes_its_time,
)


def run(request, emitter):
    chosen = BEHAVIOURS[request.case.positive("devices") - 1]
    print("doing", chosen.__name__)
    sys.stdout.flush()
    chosen(emitter)
