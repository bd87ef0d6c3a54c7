"""Theory of online subspaces that no mechanism runs, for the tests beside it."""


def nodes_of_row(row, length):
    """Return the nodes that hold a row; rows and nodes are counted from 1.

    Row i is in node t if and only if t is one of i, i + low(i), ... up to m.
    """
    nodes = []
    while row <= length:
        nodes.append(row)
        row += row & -row
    return tuple(nodes)
