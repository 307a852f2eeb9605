"""Values cross the channel whole; nothing else than data crosses; no stranger's bytes do harm."""

from __future__ import annotations

import gc
import itertools
import json
import math
import os
import random
import socket
import threading
import time
import weakref
from array import array
from collections import deque
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from autograder.judging.client import Client
from autograder.judging.transports import LocalTransport
from autograder.sandbox.inside.channel import FRAME, Channel, Closed, frame, parse
from autograder.sandbox.inside.protocol import MAX_KEYS, TENSOR_TYPES, ProtocolError, pack, unpack
from autograder.sandbox.inside.workspace import OutOfTime, time_limit


def no_handles(value: Any) -> Any:
    raise AssertionError(f"not plain data: {value!r}")


def crossed(value: Any) -> Any:
    """The value after the whole way: pack, frame, parse, unpack."""
    blobs: list[bytes] = []
    data = frame({"v": pack(value, blobs, no_handles)}, blobs)
    head_size, _ = FRAME.unpack(data[: FRAME.size])
    start = FRAME.size + head_size
    header, back = parse(data[FRAME.size : start], data[start:])
    return unpack(header["v"], back, no_handles)


def refused(node: Any, *blobs: bytes) -> str:
    with pytest.raises(ProtocolError) as caught:
        unpack(node, list(blobs), lambda n: pytest.fail("a handle"))
    return str(caught.value)


def stated(form: Any = "<f8 2", **more: Any) -> dict[str, Any]:
    """What a stranger says of an array's bytes."""
    return {"form": form, **more}


# ------------------------------------------------------------------------------------------ round trips

PLAIN = [
    *(None, True, False, 0, -1, 2**63, -(2**4000), 0.1, -0.0, 1e308, 5e-324, 1 + 2j, complex("nan+infj")),
    *("", "é…\0\n", "👩‍🔬", "\\ud83d", b"", bytes(range(256)), [], (), {}, set(), [[[]]], ((1,), [2], {3: (4,)})),
    *({"a": 1, 2: "b", (3, 4): None, None: [], 1.5: True}, {1, "a", (2, 3), None}, frozenset({1})),
    *(range(0), range(5, -7, -3), slice(1, None, 2), slice(None, -1), Ellipsis, np.dtype("float32"), np.int64),
    *(torch.float32, torch.bfloat16, torch.bool),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda v: repr(sorted(v, key=repr) if isinstance(v, set) else v)[:30])
def test_plain_values(value: Any) -> None:
    back = crossed(value)
    if isinstance(value, type):
        assert back == np.dtype(value)
    elif isinstance(value, frozenset):
        assert type(back) is set and back == value
    elif isinstance(value, complex) and value != value:
        assert math.isnan(back.real) and math.isinf(back.imag)
    else:
        assert type(back) is type(value) and back == value
        assert not isinstance(value, float) or math.copysign(1, back) == math.copysign(1, value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_floats_that_are_no_json(value: float) -> None:
    assert repr(crossed(value)) == repr(value)


DTYPES = [
    *("?", "i1", "u1", "<i2", ">i4", "<i8", "<u8", "<f2", "<f4", ">f8", "<f8", "<c8", "<c16", "S3", "<U2", ">U2"),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 4), (2, 0, 3), (1, 1, 1, 1)])
def test_arrays_of_all_types_and_shapes(dtype: str, shape: tuple[int, ...]) -> None:
    array = np.arange(math.prod(shape)).reshape(shape).astype(dtype)
    back = crossed(array)
    assert type(back) is np.ndarray and back.shape == shape and back.flags.writeable
    assert back.dtype == array.dtype.newbyteorder("=") and np.array_equal(back, array)


def test_arrays_of_all_orders() -> None:
    base = np.arange(24.0).reshape(2, 3, 4)
    for view in (base.T, np.asfortranarray(base), base[::-1], base[:, ::2, 1:3], np.broadcast_to(base, (5, 2, 3, 4))):
        back = crossed(view)
        assert np.array_equal(back, view) and back.flags.writeable


def test_nan_infinity_and_empty_strings_in_arrays() -> None:
    array = np.array([np.nan, np.inf, -np.inf, -0.0])
    assert crossed(array).tobytes() == array.tobytes()
    assert crossed(np.array(["", "é\0x"])).tolist() == ["", "é\0x"]


@pytest.mark.parametrize("name", sorted(TENSOR_TYPES))
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_tensors(name: str, shape: tuple[int, ...]) -> None:
    tensor = torch.arange(math.prod(shape)).reshape(shape).to(getattr(torch, name))
    back = crossed(tensor)
    assert type(back) is torch.Tensor and back.dtype == tensor.dtype and back.shape == tensor.shape
    assert torch.equal(back, tensor)


def test_a_tensor_is_an_array_where_the_set_has_no_torch() -> None:
    blobs: list[bytes] = []
    node = pack((torch.eye(2, dtype=torch.bfloat16), [torch.tensor(3)]), blobs, dict)
    table, (number,) = unpack(node, blobs, dict, arrays=True)
    assert type(table) is np.ndarray and table.dtype == np.float32 and (table == np.eye(2)).all()
    assert type(number) is np.ndarray and number.dtype == np.int64 and number == 3


def test_special_tensors() -> None:
    parameter = torch.nn.Parameter(torch.ones(2, 3))
    back = crossed(parameter)
    assert type(back) is torch.Tensor and not back.requires_grad
    assert torch.equal(crossed(torch.arange(6).reshape(2, 3).T), torch.arange(6).reshape(2, 3).T)
    assert torch.equal(crossed(torch.tensor([1 + 2j]).conj()), torch.tensor([1 - 2j]))
    assert crossed(torch.tensor([math.nan, math.inf], dtype=torch.bfloat16))[1] == math.inf
    assert crossed(torch.Size([2, 3])) == (2, 3)


def test_numpy_scalars_keep_their_type() -> None:
    for scalar in (np.float32(0.1), np.int8(-3), np.bool_(True), np.complex64(1j), np.float64("nan")):
        back = crossed(scalar)
        assert type(back) is type(scalar) and (back == scalar or np.isnan(back))


# -------------------------------------------------------------------------------- subclasses stay behind


class Liar:
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class LyingInt(Liar, int): ...


class LyingFloat(Liar, float): ...


class LyingStr(Liar, str): ...


class LyingList(Liar, list): ...


class LyingTuple(Liar, tuple): ...


class LyingDict(Liar, dict): ...


class LyingSet(Liar, set): ...


class LyingArray(np.ndarray):
    def __eq__(self, other: object) -> Any:
        return np.True_

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        return np.True_


class LyingTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("eq", "allclose"):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        *((LyingInt(3), 3), (LyingFloat(2.5), 2.5), (LyingStr("x"), "x"), (LyingList([1]), [1])),
        *((LyingTuple((1,)), (1,)), (LyingDict(a=1), {"a": 1}), (LyingSet({1}), {1})),
        *((np.ones(2).view(LyingArray), np.ones(2)), (torch.ones(2).as_subclass(LyingTensor), torch.ones(2))),
    ],
    ids=lambda v: type(v).__name__,
)
def test_subclasses_become_the_plain_type(value: Any, plain: Any) -> None:
    back = crossed(value)
    assert type(back) is type(plain)
    assert bool(np.all(np.asarray(back) == np.asarray(plain)))


def test_what_is_not_plain_is_left_to_the_caller() -> None:
    seen: list[Any] = []

    def other(value: Any) -> dict[str, Any]:
        seen.append(value)
        return {"handle": len(seen)}

    loop: list[Any] = []
    loop.append(loop)
    structured = np.zeros(2, dtype=[("a", "f8")])
    values = [object(), print, int, structured, range(10**12), 2**5000, np.datetime64("2020"), torch.qint8]
    sparse = torch.eye(2).to_sparse()
    pack([*values, sparse, loop, np.dtype("O")], [], other)
    assert len(seen) == len(values) + 3 and all(a is b for a, b in zip(seen, values, strict=False))


# -------------------------------------------------------------------------------------- strangers' bytes


SHAPES = [
    "3",
    "1",
    "",
    "-2",
    "-1 -2",
    "2.0",
    "True 2",
    "2L",
    "2,",
    "2 ",
    " 2",
    "2  1",
    "+2",
    "２",
    "2**1",
    "2\n",
    "None",
]
TYPES = ["|O", "<M8[s]", "|V8", "f8, f8", "f8", "<f7", "<f999", "", "<", "<f８", "(1 2)f8", "__import__('os').abort()"]


@pytest.mark.parametrize(
    ("form", "blob"),
    [
        *(("<f8 2", b""), ("<f8 2", bytes(200)), (None, bytes(16)), (3, bytes(16)), (["<f8 2"], bytes(16))),
        *((f"<f8 {shape}", bytes(16)) for shape in (*SHAPES, "9" * 20, "1" + "0" * 5000, "(" * 5000)),
        *(
            (f"<f8 {shape}", b"")
            for shape in ("0 99999999999", "4294967296 4294967296", "0 67108864 67108864 67108864")
        ),
        ("<f8" + " 1" * 40, bytes(8)),
        *((f"{dtype} 2", bytes(16)) for dtype in TYPES),
        *(("|S0 9999999", b""), ("<U0 9999999", b""), ("|S0", b"")),
    ],
    ids=itertools.count(),
)
def test_lying_arrays(form: Any, blob: bytes) -> None:
    for tag in ("array", "scalar", "tensor"):
        refused({tag: 0, "dtype": "float32", "form": form}, blob)
        refused({tag: 0, "dtype": "float32"}, blob)


@pytest.mark.parametrize(
    "node",
    [
        *({}, [], [1], {"nonsense": 1}, *({"array": n, **stated()} for n in (0, -1, True, "0", None, [0], 0.0))),
        *({"float": "1e5"}, {"float": []}, {"complex": []}, {"complex": ["x", "y"]}, {"bytes": "*"}, {"bytes": 3}),
        *({"dict": 3}, {"dict": [[1]]}, {"dict": [[{"list": []}, 1]]}, {"dict": "ab"}, {"set": [{"dict": []}]}),
        *({"list": 3}, {"list": [[]]}, {"tuple": None}, {"range": [0, 10**10, 1]}, {"range": [0, 1, 0]}),
        *({"range": [0, 10**30, 1]}, {"range": ["0", "9" * 5000, 1]}, {"range": []}, {"slice": [1, 2, 3, 4]}),
        *(
            {"dtype": "O"},
            {"dtype": "(1 2)f8"},
            {"dtype": "f8,f8"},
            {"dtype": "V9"},
            {"dtype": ["<f8"]},
            {"dtype": "<f9"},
        ),
        *({"torch_dtype": "nn"}, {"torch_dtype": "qint8"}, {"torch_dtype": "_dynamo"}, {"torch_dtype": 3}),
        *({"tensor": 0, **stated(), "dtype": name} for name in ("quint8", "float8_e4m3fn", "_dynamo", None, 3)),
        *({"tensor": 0, **stated(), "dtype": name} for name in ("complex128", "bfloat16", "float16")),
        {"dict": [[n, 0] for n in range(MAX_KEYS + 1)]},
        {"list": [{"set": list(range(MAX_KEYS // 2 + 1))}, {"set": list(range(MAX_KEYS // 2 + 1))}]},
    ],
    ids=lambda n: json.dumps(n)[:40],
)
def test_lying_values(node: Any) -> None:
    refused(node)
    if isinstance(node, dict) and "tensor" in node:
        refused(node, bytes(16))


def test_keys_that_collide_do_not_take_long() -> None:
    keys = [[n * (2**61 - 1), 0] for n in range(MAX_KEYS)]  # all have the hash 0
    start = time.process_time()
    unpack({"dict": keys}, [], no_handles)
    assert time.process_time() - start < 10
    refused({"dict": [*keys, [1, 0]]})


def test_a_layout_that_is_not_one() -> None:
    assert unpack({"array": 0, **stated(layout=["x"])}, [bytes(16)], no_handles).shape == (2,)
    refused({"array": 0, **stated("<f8", layout="strided")}, bytes(8))


def test_deep_nesting() -> None:
    node: Any = 1
    for _ in range(60):
        node = {"list": [node]}
    assert "deeply" in refused(node)
    for deep in (b"[" * 10**6, b'{"m":' * 10**5, b'{"m": {"a": ' + b'{"list":[' * 10**5):
        with pytest.raises(ProtocolError):
            parse(deep, b"")


@pytest.mark.parametrize(
    ("head", "body"),
    [
        *((b"", b""), (b"null", b""), (b"[]", b""), (b"{}", b""), (b'{"m": {}}', b""), (b'{"m": [], "b": []}', b"")),
        *((b'{"m": {}, "b": 3}', b""), (b'{"m": {}, "b": [1]}', b""), (b'{"m": {}, "b": [-1, 1]}', b"")),
        *((b'{"m": {}, "b": [true]}', b"x"), (b'{"m": {}, "b": [1.0]}', b"x"), (b'{"m": {}, "b": []}', b"x")),
        *((b'{"m": {}, "b": [1' + b"0" * 5000 + b"]}", b"x"), (b"\xff\xfe", b""), (b'{"m": ' + b"1" * 5000, b"")),
    ],
    ids=itertools.count(),
)
def test_lying_frames(head: bytes, body: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse(head, body)


def test_halves_of_surrogate_pairs_do_not_arrive() -> None:
    assert crossed("a\ud800b") == "a?b"
    head = json.dumps({"m": {"\udfff": ["\ud83d\ude00", "x\ud800"]}, "b": []}).encode()
    header, _ = parse(head, b"")
    json.dumps(header, ensure_ascii=False).encode()
    assert header == {"?": ["😀", "x?"]}


OPENED: list[socket.socket] = []


@pytest.fixture(autouse=True)
def no_socket_is_left_open() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


def sockets() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets, which are closed after the test."""
    made = socket.socketpair()
    OPENED.extend(made)
    return made


def pair(most: int = 2**32) -> tuple[Channel, socket.socket]:
    """A channel that reads `most` bytes of header and of blobs, and the other end."""
    ours, theirs = sockets()
    return Channel(ours, max_received=(most, most)), theirs


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


def test_messages_over_a_socket() -> None:
    ours, theirs = sockets()
    one, other = Channel(ours), Channel(theirs)
    blob = bytes(3 * 2**20)
    sender = threading.Thread(target=one.send, args=({"x": 1}, [blob, b""]))
    sender.start()
    assert other.receive(soon()) == ({"x": 1}, [blob, b""])
    sender.join()


def test_stated_lengths_are_not_believed() -> None:
    for lengths in ((2**32 - 1, 0), (0, 2**63), (10, 2**64 - 1), (101, 0), (0, 101)):
        channel, theirs = pair(100)
        theirs.sendall(FRAME.pack(*lengths))
        with pytest.raises(ProtocolError):
            channel.receive(soon())


def test_ends_and_deadlines() -> None:
    channel, theirs = pair()
    theirs.sendall(b"\0\0")
    with pytest.raises(TimeoutError):
        channel.receive(soon(0.05))
    theirs.close()
    with pytest.raises(Closed):
        channel.receive(soon())
    with pytest.raises((Closed, TimeoutError)):
        for _ in range(1000):
            channel.send({"x": "y" * 10000}, [], soon(0.5))
    with pytest.raises(TimeoutError):
        channel.receive(time.monotonic() - 1)


def test_a_reader_that_does_not_read_holds_nobody_up() -> None:
    channel, _theirs = pair()
    with pytest.raises(TimeoutError):
        channel.send({"x": 1}, [bytes(32 * 2**20)], soon(0.3))


def test_drops_of_one_byte_keep_to_the_deadline() -> None:
    channel, theirs = pair()
    stop = threading.Event()

    def drip() -> None:
        while not stop.is_set():
            try:
                theirs.send(b"\0")
            except OSError:
                return
            time.sleep(0.01)

    theirs.sendall(FRAME.pack(1000, 0))
    thread = threading.Thread(target=drip)
    thread.start()
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        channel.receive(soon(0.3))
    assert time.monotonic() - start < 30
    stop.set()
    thread.join()


def test_sent_descriptors_are_dropped() -> None:
    channel, theirs = pair()
    read, write = os.pipe()
    socket.send_fds(theirs, [frame({"x": 1})], [write] * 50)
    os.close(write)
    before = len(os.listdir("/proc/self/fd"))
    assert channel.receive(soon())[0] == {"x": 1}
    assert len(os.listdir("/proc/self/fd")) == before
    assert os.read(read, 1) == b""  # no writer is left anywhere
    os.close(read)


def test_random_bytes_and_broken_messages() -> None:
    rng = random.Random(0)
    blobs: list[bytes] = []
    node = pack({"a": [np.ones((2, 3)), torch.ones(2), 1 + 2j, {1, 2}, "é"], "b": (b"x", range(3))}, blobs, no_handles)
    whole = frame({"v": node, "number": 3}, blobs)
    for attempt in range(3000):
        data = bytearray(whole if attempt % 5 else rng.randbytes(rng.randrange(200)))
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(data)) if data else 0
            change = rng.randrange(3)
            if change == 0 and data:
                data[place] = rng.randrange(256)
            elif change == 1:
                del data[place : place + rng.randrange(8)]
            else:
                data[place:place] = rng.choice([b"0", b'"', b"]", b"}", b"[", b"9" * 30, b"null", rng.randbytes(3)])
        channel, theirs = pair(10**6)
        theirs.sendall(data)
        theirs.close()
        try:
            header, back = channel.receive(soon(2))
            if "v" in header:
                unpack(header["v"], back, lambda n: None)
        except (ProtocolError, Closed, TimeoutError):
            continue
        finally:
            channel.sock.close()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        ([Fraction(1, 2), Decimal("2")], [0.5, 2.0]),
        (array("d", [1.0, 2.5]), [1.0, 2.5]),
        (deque([1, 2]), [1, 2]),
        (np.array([[1.0, Fraction(1, 2)], [2, 3]], dtype=object), [[1.0, 0.5], [2, 3]]),
        (np.array(None, dtype=object), None),
    ],
)
def test_numbers_in_unusual_clothes_cross_as_plain_ones(value: object, expected: object) -> None:
    blobs: list[bytes] = []
    node = pack(value, blobs, lambda item: pytest.fail(f"{item!r} became a handle"))
    assert unpack(node, blobs, pytest.fail) == expected


def test_what_is_given_twice_is_one_object_there() -> None:
    client = Client(LocalTransport({"same": lambda first, second: first is second}))
    same, array = client.get(["same"])["same"], np.ones(2)
    assert same(array, array) is True
    assert same(array, array.copy()) is False


def test_a_limit_is_not_lost_in_what_weakref_calls_back() -> None:
    """Whatever a callback of a dying object raises goes to nobody; the limit would be gone with it."""
    text = "def spins(_):\n    end = monotonic() + 0.3\n    while monotonic() < end: pass"
    names: dict[str, Any] = {"monotonic": time.monotonic}
    exec(compile(text, weakref.__file__, "exec"), names)
    dying = Channel.__new__(Channel)
    kept = weakref.ref(dying, names["spins"])
    with pytest.raises(OutOfTime), time_limit(0.05, again=0, clock=time.monotonic):
        del dying
        time.sleep(5)
    assert kept() is None


def test_a_limit_is_not_lost_while_garbage_is_collected() -> None:
    class Dying:
        def __del__(self) -> None:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                pass

    dying = Dying()
    dying.itself = dying  # type: ignore[attr-defined]
    with pytest.raises(OutOfTime), time_limit(0.05, again=0, clock=time.monotonic):
        del dying
        gc.collect()
        time.sleep(5)
