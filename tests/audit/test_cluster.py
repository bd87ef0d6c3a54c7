"""A Dask cluster is an executor like any other, and loses nothing with a worker."""

import os
import signal
import time

import pytest

from dpaudit import Pair, PureDP
from dpaudit.attacks import Identity
from dpaudit.audit import audit

distributed = pytest.importorskip(
    "distributed", reason="the extra 'cluster' is not installed"
)
# What Dask's own threads and sockets say when a worker is killed is not the question.
pytestmark = pytest.mark.filterwarnings("ignore")

OPTIONS = {
    "pair": Pair([0.0], [0.0, 1.0]),
    "claim": PureDP(1.0),
    "max_samples": 150,
    "attacks": [Identity()],
}


def values(result):
    return {k: v for k, v in result.to_dict().items() if k != "seconds"}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def closure(scale, rest=0.0):
    """Return what only Dask can send: a function inside a function."""

    def mechanism(data, rng):
        time.sleep(rest)
        return data.sum() + rng.laplace(scale=scale)

    return mechanism


def test_an_audit_is_the_same_on_a_cluster(client):
    with client.get_executor() as executor:
        found = audit(closure(1.0), **OPTIONS, executor=executor)
    assert values(found) == values(audit(closure(1.0), **OPTIONS))


def test_a_worker_that_is_killed_loses_nothing(client):
    before = client.run(os.getpid)
    assert len(before) == 2
    killed = []

    def kill_midway(progress):
        if progress.samples > 50 and not killed:
            killed.append(next(iter(before.values())))
            os.kill(killed[0], signal.SIGKILL)

    with client.get_executor() as executor:
        found = audit(
            closure(1.0, rest=0.005), **OPTIONS, executor=executor, progress=kill_midway
        )
    assert killed
    assert values(found) == values(audit(closure(1.0), **OPTIONS))
    client.wait_for_workers(2)
    assert killed[0] not in client.run(os.getpid).values()
