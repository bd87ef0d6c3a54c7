import json
import os
import signal
import socket
from concurrent.futures import Executor, Future
from contextlib import nullcontext, suppress
from functools import partial

import numpy as np
import pytest
from audit_cases import CLAIM, PAIR, audited, laplace_sum, values
from click.testing import CliRunner

from dpaudit import InputError
from dpaudit.audit import Run, audit
from dpaudit.audit.sampling import workers
from dpaudit.audit.sampling.parcels import WorkerSubject
from dpaudit.audit.sampling.workers import Workers
from dpaudit.cli import main, running
from dpaudit.errors import ExecutorError
from dpaudit.reports.runner import Job, carry_out

distributed = pytest.importorskip(
    "distributed", reason="the extra 'cluster' is not installed"
)
# What Dask's own threads and sockets say when they end is not the question.
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("in_few_rounds"),
]

OPTIONS = {"budget": 200}


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def all_is_sent(monkeypatch):
    monkeypatch.setattr(workers, "_WORTH", 0.0)


def processes(client):
    """Return the processes of two workers; who is dying is waited for."""
    while True:
        client.wait_for_workers(2)
        with suppress(OSError):
            return list(client.run(os.getpid).values())


def closure(scale):
    """Return what only Dask can send: a function inside a function."""
    return lambda data, rng: data.sum() + rng.laplace(scale=scale)


def test_an_audit_is_the_same_on_a_cluster_whose_workers_die(client):
    """One after the other, and both at once, so that nobody has the pair any more."""
    mechanism, kills = closure(1.0), iter([1, 2, 1])

    def kill(progress):
        if progress.samples > 20 and (count := next(kills, 0)):
            for process in processes(client)[:count]:
                os.kill(process, signal.SIGKILL)

    run = Run(executor=client.get_executor(), progress=kill)
    found = audited(mechanism, **OPTIONS, run=run)
    assert next(kills, None) is None
    client.wait_for_workers(2)
    assert values(found) == values(audited(mechanism, **OPTIONS))


def aligned(data):
    return float(data.flags.aligned) + 1e-9 * (data.T @ data)[0, 0]


def test_arrays_arrive_as_they_lie_here(client):
    """Dask has them at odd addresses, where products are rounded otherwise."""
    rows = np.random.default_rng(0).standard_normal((3001, 5))
    jobs = [Job("job", 0, partial(aligned, rows), "jobs")]
    wanted = carry_out(jobs)
    assert carry_out(jobs, executor=client.get_executor()) == wanted
    (told,) = wanted.values()
    assert told > 1


def test_a_client_is_an_executor_and_a_generator_is_not_copied(client):
    found = audited(laplace_sum, **OPTIONS, run=Run(executor=client))
    assert values(found) == values(audited(laplace_sum, **OPTIONS))
    rng = np.random.default_rng(0)
    own = lambda data: data.sum() + rng.laplace()  # noqa: E731
    with pytest.raises(InputError, match=r"a generator of its own \(Generator\)"):
        audit(own, pair=PAIR, claim=CLAIM, run=Run(executor=client))


def test_workers_that_are_not_like_this_process_are_named(
    client, tmp_path, monkeypatch
):
    (tmp_path / "only_here.py").write_text("def noisy(data, rng): return 1.0")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here

    with pytest.raises(InputError, match=r"worker.*cannot import only_here"):
        audit(only_here.noisy, pair=PAIR, claim=CLAIM, run=Run(executor=client))
    monkeypatch.setattr(WorkerSubject, "here", lambda: (("Python", "2.7.18"),) * 5)
    with pytest.raises(InputError, match=r"tcp://.*another Python: 3.* process 2\.7"):
        Workers(client).check()


def test_a_cluster_without_workers_is_named(monkeypatch):
    monkeypatch.setattr(workers, "_PATIENCE", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        pytest.raises(ExecutorError, match="no worker for"),
    ):
        audited(laplace_sum, run=Run(executor=client))


def test_a_scheduler_that_is_not_there_is_named(client, monkeypatch):
    """Nothing, a service that says nothing, a worker, and ways that Dask has not."""
    monkeypatch.setattr(running, "_TIMEOUT", 1)
    worker = next(iter(client.scheduler_info()["workers"]))
    with socket.create_server(("localhost", 0)) as silent:
        service = f"tcp://localhost:{silent.getsockname()[1]}"
        for address in ("localhost:9", service, worker, "tls://localhost:9", "a://b:9"):
            done = CliRunner().invoke(
                main, ["audit", "laplace", "--scheduler", address]
            )
            assert done.exit_code == 2
            assert f"no scheduler answers at {address}" in done.stderr


def test_a_scheduler_that_goes_away_is_named(monkeypatch):
    with distributed.LocalCluster(
        n_workers=1, processes=False, protocol="tcp", dashboard_address=None
    ) as cluster:
        monkeypatch.setattr(
            running, "watch", lambda: nullcontext(lambda _: cluster.close())
        )
        command = ["audit", "laplace", "--scheduler", cluster.scheduler_address]
        done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "dpaudit: the scheduler is gone; with a store" in done.stderr


def test_commands_work_on_a_cluster(client):
    address = ["--scheduler", client.scheduler.address]
    audits = ["audit", "laplace", "--max-samples", "200", "--json"]
    told = []
    for by in (address, []):
        done = CliRunner().invoke(main, [*audits, *by])
        assert done.exit_code == 0
        told.append(json.loads(done.stdout) | {"seconds": 0})
    assert told[0] == told[1]
    done = CliRunner().invoke(main, ["report", "run", "list-culling", *address])
    assert done.exit_code == 0


class Lost(Executor):
    """Carries nothing out, as a cluster that is gone."""

    def submit(self, function, /, *arguments):
        future = Future()
        future.set_exception(distributed.KilledWorker("task", None, 4))
        return future


def test_a_job_is_not_blamed_for_the_workers():
    job = Job("job", 0, dict, "jobs")
    with pytest.raises(ExecutorError, match="what was finished is kept"):
        carry_out([job], executor=Lost(), go_on=True)
