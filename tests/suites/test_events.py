"""The event stream, as a host sees it: framing, size, one write each, and how exceptions are told."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import events
from common.request import Request
from tests.suites import entry


class Recorder:
    """A pipe, and every os.write to it."""

    def __init__(self, monkeypatch):
        self.writes = []
        monkeypatch.setattr(events.os, "write", self._write)

    def _write(self, descriptor, data):
        self.writes.append((descriptor, data))
        return len(data)

    def decoded(self):
        return [json.loads(data[1:]) for _, data in self.writes]


@pytest.fixture
def recorder(monkeypatch):
    return Recorder(monkeypatch)


def make_events():
    ticks = iter(range(100, 1000))
    return events.Events(7, clock=lambda: next(ticks), start=100)


def test_an_event_is_one_write_of_a_record_separator_compact_ascii_json_and_a_newline(recorder):
    make_events().metric("größe", 1.5, "1")
    assert recorder.writes == [
        (7, b'\x1e{"event":"metric","seq":0,"t":0,"rank":0,"name":"gr\\u00f6\\u00dfe","value":1.5,"unit":"1"}\n')
    ]


def test_seq_counts_events_and_t_counts_seconds_since_the_start(recorder):
    emitter = make_events()
    with emitter.phase("measure"):
        emitter.sample("measure", 0, 2, 32, 0.5)
    emitter.finished()
    assert recorder.decoded() == [
        {"event": "phase_begin", "seq": 0, "t": 0, "rank": 0, "phase": "measure"},
        {
            "event": "sample",
            "seq": 1,
            "t": 1,
            "rank": 0,
            "phase": "measure",
            "index": 0,
            "steps": 2,
            "images": 32,
            "seconds": 0.5,
        },
        {"event": "phase_end", "seq": 2, "t": 2, "rank": 0, "phase": "measure"},
        {"event": "finished", "seq": 3, "t": 3, "rank": 0},
    ]


def test_a_phase_ends_also_when_its_block_raises(recorder):
    with pytest.raises(KeyError), make_events().phase("measure"):
        raise KeyError
    assert [event["event"] for event in recorder.decoded()] == ["phase_begin", "phase_end"]


def test_an_event_of_4096_bytes_is_written_and_one_of_4097_raises(recorder):
    emitter = make_events()
    emitter.metric("", 1, "1")
    room = 4096 - len(recorder.writes[0][1])
    emitter.metric("n" * room, 1, "1")
    assert len(recorder.writes[1][1]) == 4096
    with pytest.raises(ValueError, match=r"^event 'metric' takes 4097 bytes; the limit is 4096$"):
        emitter.metric("n" * (room + 1), 1, "1")
    assert len(recorder.writes) == 2


def test_an_event_that_is_refused_leaves_no_gap_in_seq(recorder):
    emitter = make_events()
    with pytest.raises(ValueError, match="not JSON compliant"):
        emitter.metric("loss", float("nan"), "1")
    emitter.finished()
    assert [event["seq"] for event in recorder.decoded()] == [0]


def test_a_short_write_raises(monkeypatch):
    monkeypatch.setattr(events.os, "write", lambda descriptor, data: len(data) - 1)
    with pytest.raises(OSError, match=r"^event 'finished' was cut: "):
        make_events().finished()


@given(st.text(max_size=6000), st.sampled_from(["x", "é", "漢", "\U0001f600", "\n", '"']), st.integers(0, 9000))
def test_the_text_of_failed_is_cut_to_fit_and_marked(text, filler, count):
    text += filler * count
    data = []
    emitter = events.Events(7, clock=lambda: 12345.678901, start=0)
    emitter._write = lambda body: data.append(events._encode(body))
    emitter.failed("error", "ValueError", text)
    assert len(data[0]) <= 4096
    told = json.loads(data[0][1:])["text"]
    if told != text:
        assert told.endswith(events.TRUNCATED)
        assert text.startswith(told[: -len(events.TRUNCATED)])


REQUEST = json.dumps(
    {"experiment": "made_up", "case": {"a": 1}, "framework": None, "accelerator": "cpu", "settings": {"seed": 1}}
)


def with_request(**values):
    return json.dumps({**json.loads(REQUEST), **values})


def run_workload(tmp_path, body, *arguments):
    """(exit code, events, stderr) of an experiment whose run has `body`, beside the real ones."""
    workloads = entry.copied(tmp_path)
    made_up = f"import os, sys\nfrom common import events\ndef run(request, emitter):\n    {body}\n"
    (workloads / "experiments" / "made_up.py").write_text(made_up)
    return entry.run(workloads, *(arguments or [REQUEST]))


def failure(texts):
    return {key: texts[-1][key] for key in ("event", "kind", "type", "text")}


def test_a_workload_that_returns_is_finished(tmp_path):
    code, texts, _ = run_workload(tmp_path, "emitter.metric('seed', request.settings['seed'], '1')")
    assert code == 0
    assert [event["event"] for event in texts] == ["metric", "environment", "finished"]


@pytest.mark.parametrize(
    ("request_text", "expected"),
    [
        (REQUEST, (None, None)),
        (with_request(budget_s=None, data=None), (None, None)),
        (with_request(budget_s=600, data={"file": "/data/c.tar.gz"}), (600.0, {"file": "/data/c.tar.gz"})),
    ],
)
def test_budget_and_data_are_optional(request_text, expected):
    asked = Request(json.loads(request_text))
    assert (asked.budget_s, asked.data) == expected


def test_events_survive_what_else_the_workload_does_to_stdout(tmp_path):
    body = "print('no newline', end='', flush=True); os.close(1); os.open('/dev/null', 1)"
    code, texts, _ = run_workload(tmp_path, body)
    assert code == 0
    assert texts[-1]["event"] == "finished"


@pytest.mark.parametrize(
    ("raised", "kind", "type_name", "code"),
    [
        ("events.Unsupported('no such device')", "unsupported", "Unsupported", 0),
        ("events.Skipped('100 steps would take 1 h')", "skipped", "Skipped", 0),
        ("MemoryError('Unable to allocate')", "out_of_memory", "MemoryError", 0),
        ("RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')", "out_of_memory", "RuntimeError", 0),
        ('RuntimeError("DefaultCPUAllocator: can\'t allocate memory")', "out_of_memory", "RuntimeError", 0),
        ("RuntimeError('DefaultCPUAllocator: not enough memory')", "out_of_memory", "RuntimeError", 0),
        ("type('OutOfMemoryError', (RuntimeError,), {})('x')", "out_of_memory", "OutOfMemoryError", 0),
        ("type('ResourceExhaustedError', (Exception,), {})('OOM')", "out_of_memory", "ResourceExhaustedError", 0),
        ("type('Sub', (type('ResourceExhaustedError', (Exception,), {}),), {})('x')", "out_of_memory", "Sub", 0),
        ("RuntimeError('CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling')", "out_of_memory", "RuntimeError", 0),
        (
            "RuntimeError('cublas runtime error : resource allocation failed at /pytorch/aten/src/THC/THCGeneral.cpp')",
            "out_of_memory",
            "RuntimeError",
            0,
        ),
        (
            "RuntimeError('cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED')",
            "out_of_memory",
            "RuntimeError",
            0,
        ),
        (
            "type('JaxRuntimeError', (RuntimeError,), {})('RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB')",
            "out_of_memory",
            "JaxRuntimeError",
            0,
        ),
        (
            "type('MXNetError', (Exception,), {})('[16:14:03] storage.h:75: Failed to allocate CPU Memory')",
            "out_of_memory",
            "MXNetError",
            0,
        ),
        (
            "type('MXNetError', (Exception,), {})('storage.cc:119: cudaMalloc failed: out of memory')",
            "out_of_memory",
            "MXNetError",
            0,
        ),
        (
            "type('InternalError', (type('OpError', (Exception,), {}),), {})('CUDA_ERROR_OUT_OF_MEMORY')",
            "out_of_memory",
            "InternalError",
            0,
        ),
        ("RuntimeError('cuDNN error: CUDNN_STATUS_EXECUTION_FAILED')", "error", "RuntimeError", 1),
        ("type('OpError', (Exception,), {})('Blas GEMM launch failed')", "error", "OpError", 1),
        ("type('MXNetError', (Exception,), {})('Only support NCW, NCHW and NCDHW layout')", "error", "MXNetError", 1),
        ("ValueError('the disk is out of memory')", "error", "ValueError", 1),
    ],
)
def test_exceptions_become_failed_events(tmp_path, raised, kind, type_name, code):
    got, texts, stderr = run_workload(tmp_path, "raise " + raised)
    assert (got, texts[-1]["event"], texts[-1]["kind"], texts[-1]["type"]) == (code, "failed", kind, type_name)
    assert ("Traceback" in stderr) == (kind not in ("unsupported", "skipped"))


# As the frameworks raise them: PyTorch's ATen/native/cudnn/Conv_v8.cpp (TORCH_CHECK) and Conv_v7.cpp, TensorFlow's
# core/kernels/gpu_utils.cc (errors::NotFound, an OpError) and XLA's conv_algorithm_picker.cc.
NO_ALGORITHM = (
    "RuntimeError('GET was unable to find an engine to execute this computation')",
    "RuntimeError('Unable to find a valid cuDNN algorithm to run convolution')",
    "type('NotFoundError', (type('OpError', (Exception,), {}),), {})('No algorithm worked! [Op:Conv2D]')",
    "type('XlaRuntimeError', (RuntimeError,), {})('UNKNOWN: Failed to determine best cudnn convolution algorithm')",
)


FULL, ROOM = "[(9.0, 11264.0), (10300.4, 11264.0)]", "[(10130.0, 11264.0)]"
UNKNOWN = "out of memory or not, as its allocator does not say what it had taken: "


@pytest.mark.parametrize(
    ("raised", "allocators", "kind", "code", "said"),
    [
        *((each, FULL, "out_of_memory", 0, "had taken 10300 of 11264 MiB (above 90% is") for each in NO_ALGORITHM),
        (
            NO_ALGORITHM[0],
            ROOM,
            "error",
            1,
            "its allocator had taken 10130 of 11264 MiB (above 90%",
        ),
        (NO_ALGORITHM[0], "[]", "error", 1, UNKNOWN),
        (NO_ALGORITHM[0], "1 / 0", "error", 1, UNKNOWN),
    ],
)
def test_where_no_algorithm_is_found_the_allocator_says_whether_memory_lacked(
    tmp_path, raised, allocators, kind, code, said
):
    framework = f"type('Framework', (), {{'allocators': lambda self: {allocators}}})"
    imported = f"sys.modules['frameworks.torch.facts'] = type('facts', (), {{'Framework': {framework}}})"
    got, texts, _ = run_workload(tmp_path, f"{imported}; raise {raised}")
    assert (got, texts[-1]["kind"]) == (code, kind)
    assert said in texts[-1]["text"]
    assert texts[-1]["text"].endswith(raised.rpartition("(")[2].strip("')"))


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("request.case['model']", [], "case lacks 'model'; given: a"),
        ("request.settings['max_s']", [], "settings lacks 'max_s'; given: seed"),
        ("request.case.require_only(('b', 'c'))", [], "case has unknown 'a'; known: b, c"),
        ("request.case.require_only(('a', 'c'))", [], "case lacks 'c'; given: a"),
        ("request.case.one_of('a', (2, 3))", [], "case 'a' is 1; known: 2, 3"),
        ("request.case.positive('b')", [], "case lacks 'b'; given: a"),
        ("pass", ["{}"], "request lacks 'experiment'; given: nothing"),
        ("pass", ['{"experiment": "made_up"}'], "request lacks 'case'; given: experiment"),
        ("pass", ["[]"], "request must be a JSON object, got []"),
        ("pass", ["{}", "{}"], "one JSON argument expected, got 2"),
        ("pass", [with_request(budget_s=0)], "request 'budget_s' is 0; it must be seconds above 0"),
        ("pass", [with_request(budget_s=True)], "request 'budget_s' is True; it must be seconds above 0"),
        ("pass", [with_request(data="cifar")], "data must be a JSON object, got 'cifar'"),
        ("request.data['sha256']", [with_request(data={"file": "/data/x"})], "data lacks 'sha256'; given: file"),
        (
            "pass",
            [REQUEST.replace("null", '"caffe"')],
            "request 'framework' is 'caffe'; known: torch, tensorflow, jax, mxnet, chainer, None",
        ),
    ],
)
def test_a_request_that_does_not_fit_is_an_error_that_says_what_is_known(tmp_path, body, arguments, text):
    code, texts, _ = run_workload(tmp_path, body, *arguments)
    assert code == 1
    assert failure(texts) == {"event": "failed", "kind": "error", "type": "ValueError", "text": text}


def test_an_experiment_is_known_by_its_file_and_no_other_module_can_be_named(tmp_path):
    for name in ("events", "made_up.run", "../made_up", "__init__", ""):
        code, texts, _ = run_workload(
            tmp_path / (name.replace("/", "") or "none"), "pass", with_request(experiment=name)
        )
        assert code == 1
        text = failure(texts)["text"]
        assert text.startswith(f"request 'experiment' is {name!r}; known: conv2d, device_limits, ")
        assert ", made_up, " in text


def test_an_experiment_that_cannot_be_imported_says_why(tmp_path):
    code, texts, stderr = run_workload(tmp_path, "pass\nimport no_such_module")
    assert (code, failure(texts)["type"]) == (1, "ModuleNotFoundError")
    assert failure(texts)["text"] == "No module named 'no_such_module'"
    assert "Traceback" in stderr


def test_a_terminated_workload_says_nothing(tmp_path):
    code, texts, _ = run_workload(tmp_path, "os.kill(os.getpid(), 15)")
    assert (code, texts) == (-15, [])


def test_what_was_printed_or_registered_is_not_lost_by_leaving_at_once(tmp_path):
    body = (
        "import atexit, ctypes; print('buffered', end=' '); ctypes.CDLL(None).printf(b'native '); "
        "atexit.register(os.write, 2, b'registered ')"
    )
    code, _, stderr = run_workload(tmp_path, body + "; os.dup2(2, 1)")
    assert code == 0
    assert sorted(stderr.split()) == ["buffered", "native", "registered"]


@pytest.mark.parametrize(("raised", "code"), [("None", 0), ("ValueError('x')", 1), ("MemoryError('x')", 0)])
def test_the_interpreter_is_not_taken_apart(tmp_path, raised, code):
    body = f"""
    class Kept:
        def __del__(self, write=os.write): write(2, b'taken apart')
    global kept
    kept = Kept()
    if {raised}: raise {raised}"""
    got, _, stderr = run_workload(tmp_path, body)
    assert got == code
    assert "taken apart" not in stderr


def test_threads_that_still_run_are_waited_for(tmp_path):
    body = "import threading; threading.Timer(0.2, os.write, (2, b'done')).start()"
    code, texts, stderr = run_workload(tmp_path, body)
    assert (code, texts[-1]["event"], stderr) == (0, "finished", "done")


def test_a_workload_that_exits_by_itself_keeps_its_exit_code(tmp_path):
    code, texts, _ = run_workload(tmp_path, "sys.exit(3)")
    assert (code, texts) == (3, [])
