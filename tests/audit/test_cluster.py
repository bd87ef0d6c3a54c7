import pytest
from audit_cases import audited, values

from dpaudit.audit import Run

distributed = pytest.importorskip(
    "distributed", reason="the extra 'cluster' is not installed"
)
# What Dask's own threads and sockets say when they end is not the question.
pytestmark = pytest.mark.filterwarnings("ignore")

OPTIONS = {"budget": 50}


def closure(scale):
    """Return what only Dask can send: a function inside a function."""
    return lambda data, rng: data.sum() + rng.laplace(scale=scale)


def test_an_audit_is_the_same_on_a_cluster():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        found = audited(closure(1.0), **OPTIONS, run=Run(executor=executor))
    assert values(found) == values(audited(closure(1.0), **OPTIONS))
