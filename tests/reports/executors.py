"""An executor that stands for processes: what is sent to it must survive the way."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar


def _unpacked(packed):
    function, arguments = pickle.loads(packed)
    return pickle.dumps(function(*arguments))


class PickledThreads(ThreadPoolExecutor):
    """Takes the arguments of `ProcessPoolExecutor`; `asked` has those of all."""

    asked: ClassVar[list] = []

    def __init__(self, workers, *, mp_context):
        super().__init__(workers)
        self.asked.append((workers, mp_context.get_start_method()))

    def submit(self, function, *arguments):
        packed = pickle.dumps((function, arguments))
        return super().submit(lambda: pickle.loads(_unpacked(packed)))
