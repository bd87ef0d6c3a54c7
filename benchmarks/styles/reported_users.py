"""Reported faults of users: how many rows, groups and partitions are one's."""
# What stubs do not know.
# pyright: reportArgumentType=false
# pyright: reportAttributeAccessIssue=false
# pyright: reportCallIssue=false

import math
from collections import UserList

import numpy as np
import pandas as pd

from benchmarks.styles.pairs import GAUSS, ONE
from benchmarks.styles.registry import reported
from dpaudit import ApproxDP, Pair
from dpaudit.object_pairs import ObjectPair

PLACES = ("bar", "cafe", "gym", "zoo")
VISITS = "records of user:user place:{bar,cafe,gym,zoo} spent:0.0..10.0"
TICKETS = "records of user:user seat:{1,2,3,4}"


class Events(UserList):
    """Records of which one user may have several."""


def visit(user, place, spent=1.0):
    """Return a record."""
    return {"user": user, "place": place, "spent": spent}


def of_users(*records, added):
    """Return a pair of which one has all records of a user more."""
    return ObjectPair(Events(records), Events([*records, *added]), "add-remove")


ANN, BOB = visit("ann", "bar"), visit("bob", "zoo", 4.0)
EVERYWHERE = of_users(ANN, BOB, added=[visit("eve", place, 10.0) for place in PLACES])
OFTEN = of_users(ANN, BOB, added=[visit("eve", "gym", 10.0)] * 6)


def joined(customers, rng):
    """A count of orders of customers, each of whom has at most 3."""
    orders = pd.DataFrame({"name": ["ann", "bob", "bob", "bob"], "item": [1, 1, 2, 3]})
    rows = pd.DataFrame({"name": [each["name"] for each in customers]}, dtype=object)
    return len(rows.merge(orders, on="name")) + rng.laplace(0, 3)


@reported(
    "uber-archive/sql-differential-privacy#1",
    ONE,
    ObjectPair([{"name": "ann"}], [{"name": "ann"}, {"name": "bob"}], "add-remove"),
    "a customer has three orders, and the key is taken to be unique",
    joined,
    domain="records of name:{ann,bob,cleo}",
)
def joined_as_if_unique(customers, rng):
    """A count of a join, with the sensitivity of a count."""
    orders = pd.DataFrame({"name": ["ann", "bob", "bob", "bob"], "item": [1, 1, 2, 3]})
    rows = pd.DataFrame({"name": [each["name"] for each in customers]}, dtype=object)
    return len(rows.merge(orders, on="name")) + rng.laplace(0, 1)  # fault


def groups_as_they_were(data, rng):
    """Counts of nine groups, in each of which a user is once: sigma 3."""
    groups = data.reshape(-1, 9) > 0
    return groups.sum(axis=0) + rng.normal(0, 3, 9)


@reported(
    "opendp/opendp#2949",
    GAUSS,
    Pair([[1.0] + [0.0] * 8], [[1.0] + [0.0] * 8, [1.0] * 9]),
    "nine rows in one group are a distance of 9, not 3",
    groups_as_they_were,
    domain="binary:9",
)
def groups_merged(data, rng):
    """Groups that are merged after rows were truncated for them."""
    groups = data.reshape(-1, 9) > 0
    merged = np.zeros(9)
    merged[0] = groups.sum()  # part
    return merged + rng.normal(0, 3, 9)  # fault


def distinct_by_user(events, rng):
    """Distinct places, the first one of each user."""
    first = {}
    for event in events:
        first.setdefault(event["user"], event["place"])
    return len(set(first.values())) + rng.laplace(0, 1)


@reported(
    "google/differential-privacy#84",
    ONE,
    ObjectPair(
        Events([visit("bob", "bar"), visit("cleo", "cafe"), visit("dan", "gym")]),
        Events(
            [visit("ann", place) for place in PLACES]
            + [visit("bob", "bar"), visit("cleo", "cafe"), visit("dan", "gym")]
        ),
        "add-remove",
    ),
    "a user takes the places of all others, and then has one",
    distinct_by_user,
    domain=VISITS,
)
def distinct_before_bounding(events, rng):
    """Distinct places, then the first one of each user who has any."""
    owner = {}
    for event in events:
        owner.setdefault(event["place"], event["user"])
    return len(set(owner.values())) + rng.laplace(0, 1)  # fault


def places_of_users(events, rng):
    """Places whose number of users, each in one, is above a threshold."""
    users = {event["user"]: event["place"] for event in events}
    noisy = {
        place: sum(each == place for each in users.values()) + rng.laplace(0, 1)
        for place in sorted(set(users.values()))
    }
    return {place: n for place, n in noisy.items() if n > 1 + math.log(50)}


@reported(
    "OpenMined/PipelineDP#286",
    ApproxDP(1.0, 0.01),
    OFTEN,
    "a user with many rows makes a place known alone",
    places_of_users,
    domain=VISITS,
)
def places_of_rows(events, rng):
    """Places whose number of rows is above a threshold that is for users."""
    users = {event["user"]: event["place"] for event in events}
    places = [event["place"] for event in events if event["user"] in users]
    noisy = {
        place: places.count(place) + rng.laplace(0, 1)  # part
        for place in sorted(set(places))
    }
    return {place: n for place, n in noisy.items() if n > 1 + math.log(50)}  # fault


def spent_in_one_place(events, rng):
    """Sums by place of what each user spent in one of them, up to 10."""
    frame = pd.DataFrame(list(events), columns=["user", "place", "spent"])
    one = frame.drop_duplicates("user").copy()
    one["spent"] = one["spent"].astype(float).clip(0, 10)
    sums = one.groupby("place")["spent"].sum().reindex(PLACES, fill_value=0.0)
    return sums.to_numpy() + rng.laplace(0, 10, 4)


@reported(
    "OpenMined/PipelineDP#26",
    ONE,
    EVERYWHERE,
    "a user is in four places",
    spent_in_one_place,
    domain=VISITS,
)
def spent_in_each_place(events, rng):
    """Sums by place of one row for each user and place."""
    frame = pd.DataFrame(list(events), columns=["user", "place", "spent"])
    one = frame.drop_duplicates(["user", "place"]).copy()  # part
    one["spent"] = one["spent"].astype(float).clip(0, 10)
    sums = one.groupby("place")["spent"].sum().reindex(PLACES, fill_value=0.0)
    return sums.to_numpy() + rng.laplace(0, 10, 4)  # fault


def group_of_three(data, rng):
    """A sum of users with three numbers in [-1, 1]; one may change all of them."""
    return np.clip(data, -1, 1).sum() + rng.laplace(0, 2 * 3)


@reported(
    "opendp/opendp#2945",
    ONE,
    Pair([[0.5, 0.5, 0.0], [-1.0] * 3], [[0.5, 0.5, 0.0], [1.0] * 3]),
    "three rows that leave and three that come are six",
    group_of_three,
    domain="box:-1,1:3",
)
def group_of_three_rows(data, rng):
    """A sum of a group of which no more than three rows change."""
    return np.clip(data, -1, 1).sum() + rng.laplace(0, 3)  # fault


def visits_capped(events, rng):
    """A count of visits, two of each user at most."""
    frame = pd.DataFrame(list(events), columns=["user", "place", "spent"])
    return int((frame.groupby("user").cumcount() < 2).sum()) + rng.laplace(0, 2)


@reported(
    "OpenMined/PipelineDP#3",
    ONE,
    OFTEN,
    "a user with many rows is counted as often",
    visits_capped,
    domain=VISITS,
)
def visits_of_a_user(events, rng):
    """A count of visits with the noise of two, and no bound of what a user adds."""
    return len(events) + rng.laplace(0, 2)  # fault


def spent_by_users(events, rng):
    """A sum of what each user spent, up to 10 in all."""
    totals = {}
    for event in events:
        spent = min(max(event["spent"], 0.0), 10.0)
        totals[event["user"]] = min(totals.get(event["user"], 0.0) + spent, 10.0)
    return sum(totals.values()) + rng.laplace(0, 10)


@reported(
    "OpenMined/PipelineDP#308",
    ONE,
    OFTEN,
    "each row is clipped, and a user's sum is not",
    spent_by_users,
    domain=VISITS,
)
def spent_by_rows(events, rng):
    """A sum of what was spent, up to 10 in each row, with the bound of a user's sum."""
    total = sum(min(max(event["spent"], 0.0), 10.0) for event in events)
    return total + rng.laplace(0, 10)  # fault


def seats_of_members(tickets, rng):
    """Counts of four seats; a user has the first of the tickets."""
    first = {}
    for ticket in tickets:
        first.setdefault(ticket["user"], int(ticket["seat"]))
    counts = [list(first.values()).count(seat) for seat in (1, 2, 3, 4)]
    return np.array(counts) + rng.laplace(0, 1, 4)


@reported(
    "OpenMined/PipelineDP#263",
    ONE,
    ObjectPair(
        Events([{"user": "ann", "seat": 1}]),
        Events(
            [{"user": "ann", "seat": 1}]
            + [{"user": "bob", "seat": seat} for seat in (1, 2, 3)]
        ),
        "add-remove",
    ),
    "identical tickets are dropped, and a user has several",
    seats_of_members,
    domain=TICKETS,
)
def seats_of_tickets(tickets, rng):
    """Counts of seats after a drop_duplicates that keeps users with two seats."""
    frame = pd.DataFrame(list(tickets), columns=["user", "seat"]).drop_duplicates()
    counts = (
        frame["seat"].astype(int).value_counts().reindex([1, 2, 3, 4], fill_value=0)
    )
    return counts.to_numpy() + rng.laplace(0, 1, 4)  # fault
