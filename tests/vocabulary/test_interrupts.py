import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

from dpaudit.outputs import raised_by_signal, telling_interrupts

pytestmark = pytest.mark.usefixtures("heeds_interrupts")


@contextmanager
def handling(number, handler):
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def verdict(function):
    try:
        function()
    except BaseException as error:
        return raised_by_signal(error)
    raise AssertionError("nothing was raised")


pressing_ctrl_c = partial(signal.raise_signal, signal.SIGINT)


def raising(error):
    def function(*_):
        raise error

    return function


def test_ctrl_c_is_told_from_an_exception_if_python_handles_it():
    with telling_interrupts():
        with telling_interrupts():
            assert verdict(pressing_ctrl_c)
        assert verdict(pressing_ctrl_c)
        assert not verdict(raising(KeyboardInterrupt))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert verdict(pressing_ctrl_c)
    assert verdict(raising(KeyboardInterrupt))
    assert not verdict(raising(SystemExit))


def handle(*_):
    raise TimeoutError


class Handler:
    def method(self, *_):
        raise TimeoutError


@pytest.mark.parametrize("handler", [handle, Handler().method])
def test_handlers_of_any_signal_count(handler):
    with handling(signal.SIGUSR1, handler):
        assert verdict(lambda: signal.raise_signal(signal.SIGUSR1))
        assert not verdict(raising(TimeoutError))


def test_other_handlers_stay_and_other_threads_handle_none():
    with handling(signal.SIGINT, handle), telling_interrupts():
        assert signal.getsignal(signal.SIGINT) is handle
        assert verdict(pressing_ctrl_c)
        assert not verdict(raising(KeyboardInterrupt))
    with telling_interrupts():
        signal.signal(signal.SIGINT, handle)
    assert signal.getsignal(signal.SIGINT) is handle

    def work():
        with telling_interrupts():
            return verdict(raising(KeyboardInterrupt))

    with ThreadPoolExecutor(1) as thread:
        assert not thread.submit(work).result()
