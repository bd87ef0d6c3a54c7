r"""Canonical releases: equal real numbers are equal, whatever their last bits are.

A claim is about real numbers; an audit sees doubles. Where a real release y is computed
in two ways, its images differ by kappa u s at most, with u = 2^-53, s the size of what
it was computed from and kappa the length of the computation. An attack that divides by
a range of one unit in the last place makes an event of probability 0 on D and 1 on D'
of that (Mironov, *On significance of the least significant bits for differential
privacy*, CCS 2012). So every release is put on a grid before any attack sees it: an
entry x becomes

.. math:: h \lfloor x / h + U \rfloor, \quad h = 2^{e - 30},

with 2^e the size of the entry, or of its column where that is larger, and U uniform on
[0, 1), drawn from the audit's seed, once. Multiples of h stay what they are: so do
integers, and 1/8. The sizes come from releases of the past and from the data, of both
sides alike, and from powers of two alone, so that nothing depends on a unit: 1e-300 is
a size like any other. A canonical release is a function of the release and of what
was fixed before, so everything that is proved of an audit holds for it as it stands.

**What may still go wrong.** A real number of positive probability (an atom) whose
images lie kappa u s apart falls on either side of a boundary with probability
kappa u s / h, at most 2^-22 for kappa = 1 and s the entry's own size: over the draw of
U, once per audit, pair and atom, and not once per release. On a fixed grid some atoms
would lie on a boundary for ever. Where y is continuous, an event of cells changes its
probability by the mass within kappa u s of its boundaries; docs/statistics.md says what
that can do to an audit.

An audit has one grid for each layout of releases, whose steps follow from sizes that
are learned from the past. A column's size is the 10 % quantile of the magnitudes seen,
so that a few huge entries do not make all others alike; what is larger has its own.

- *Fine* columns, that vary by less than 2^-20 of their size (a timestamp with noise of
  a second), have steps of 2^-10 of their spread. Below 2^-38 of it all is rounding.
- *Residues* are entries below 2^-40 of the other entries of their array, or of the
  data, that look like what is left of a sum that should be 0, and are no smaller than
  squares of that (the variance of a constant). What is left of one sum has few bits,
  because it is a multiple of the last bit of the summands. Beside larger entries of
  their own array, columns are residues, too, whose values repeat (a difference of two
  constants) or, where they are no squares, have either sign (one of noisy values). The
  other reading would be that of noise, or of constants, so far below everything else.
  They are read on the grid of what they are left of, which is to say as 0.
- *Lattices*, whose entries are multiples of one power of two with 36 bits in all
  (integers, eighths), have steps of that power at most: they are exact.
- *Single precision*: entries of 19 to 24 bits that are no integers have u = 2^-24 and
  steps of 2^-12 of their size.

What is read as rounding and tells D from D' is said in the result (`Canon.doubts`);
attacks that read bits ask the other question, about the doubles themselves.
"""

from dpaudit.audit.canonical.canon import Canon, ReleaseGrid

__all__ = ["Canon", "ReleaseGrid"]
