"""Looking at numbers with noise: from then on they are ordinary numbers.

Draws that are known by now are part of the ordinary numbers; what is an image of
something else is looked at there; choices are decided.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from dpaudit.arrays import Array
from dpaudit.audit.replay.follow.draws import Terms
from dpaudit.audit.replay.laws.coded import lattice_of

__all__ = ["Arithmetic", "Composed", "Looked"]

_UNITS = 8.0  # in the last place: what many operations leave
_FARTHEST = 40.0  # scales, beyond which no draw lies


class Arithmetic(NDArrayOperatorsMixin):
    """What NumPy asks of numbers; ``+=`` and its like bind single ones anew.

    They have a `tape`, a `shape` and `looked_at`.
    """

    __slots__ = ()

    # What NumPy's functions do: `dpaudit.audit.replay.follow.functions` fills them in.
    ufunc: ClassVar[Callable[..., Any]]
    function: ClassVar[Callable[..., Any]]

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        made = Arithmetic.ufunc(ufunc, method, inputs, kwargs)
        for each in inputs:  # an array of another library makes one of its own of them
            if (of_noisy := getattr(type(each), "_of_noisy", None)) is not None:
                return of_noisy(made, inputs)
        return made

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        mine: Any = self
        return Arithmetic.function(func, args, kwargs, mine.tape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        mine: Any = self
        array = mine.looked_at("array")
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __reduce_ex__(self, protocol: Any) -> Any:
        mine: Any = self
        return np.asarray(mine.looked_at("pickle")).__reduce_ex__(protocol)

    def __len__(self) -> int:
        mine: Any = self
        if not mine.shape:
            raise TypeError("len() of unsized object")
        return int(mine.shape[0])

    def __iter__(self) -> Any:
        mine: Any = self
        if not mine.shape:
            raise TypeError("iteration over a 0-d array")
        return (mine[place] for place in range(len(mine)))

    def __copy__(self) -> Any:
        mine: Any = self
        return mine.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        mine: Any = self
        return mine.copy()

    def dot(self, other: Any) -> Any:
        return np.dot(self, other)


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    """Return what ``+=`` does: an array is written into, but a number never is."""
    anew = getattr(NDArrayOperatorsMixin, f"__{name}__")
    written = getattr(NDArrayOperatorsMixin, f"__i{name}__")

    def operate(self: Any, other: Any) -> Any:
        return (written if self.shape else anew)(self, other)

    return operate


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Arithmetic, f"__i{_name}__", _in_place(_name))


class Composed:
    """Numbers with noise that consist of others, each of which is followed by itself.

    They have `noisy` and `looked_at`.
    """

    __slots__ = ()


class Looked:
    """What `dpaudit.audit.replay.follow.tracked.Tracked` does with its numbers."""

    __slots__ = ("bare", "centre", "part_of", "tape", "terms")

    outcomes: ClassVar[Callable[[Any], bool]]
    """`dpaudit.audit.replay.follow.kept.outcomes`, which others fill in."""

    def __init__(
        self, tape: Any, mean: Array, terms: Terms, *, bare: bool = False
    ) -> None:
        self.tape, self.centre, self.terms, self.bare = tape, mean, terms, bare
        self.part_of: tuple[Any, int] | None = None
        if not tape.closed:
            tape.steps.take()
        if tape.trail is not None:
            tape.trail.made(self)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.centre.shape

    @property
    def index(self) -> NDArray[np.intp]:
        """The draws in each entry, shape (size, m); -1 is none."""
        return self.terms.index

    @property
    def coef(self) -> Array:
        """Their coefficients, shape (size, m)."""
        return self.terms.coef

    @property
    def is_choice(self) -> bool:
        """Whether its entries are choices that nothing was made of yet."""
        block = self.terms.block
        return block is not None and block.choose is not None and block.is_fresh

    @property
    def is_alone(self) -> bool:
        """Whether it is draws alone, which a conversion leaves what they are."""
        waits = self.tape.closed or self.is_choice or self.is_complex
        return self.bare and self.noisy and not waits

    @property
    def is_complex(self) -> bool:
        """Whether its numbers are complex: the mean, and how often draws are taken."""
        return self.centre.dtype.kind == "c"

    @property
    def noisy(self) -> bool:
        """Whether there is any noise in it."""
        return self.terms.any

    def rounded(self, eps: float, *means: Any) -> Any:
        """Note by how much its type, with steps of `eps` at 1, may be off; return it.

        A sum in single precision is off by many units in its last place: by 8 of these,
        of the largest number, here or among `means`, which is taken off distances.
        """
        if eps > np.finfo(np.float64).eps:
            terms = self.terms
            coef = self.coef if terms.block is None else np.array([[terms.factor]])
            with np.errstate(all="ignore"):
                size = float(np.abs(coef).sum(axis=1).max(initial=0.0)) * _FARTHEST
                for mean in (self.centre, *means):
                    if mean is not None:
                        size = max(size, float(np.max(np.abs(mean), initial=0.0)))
            off, draws = _UNITS * eps * size, self.tape.draws
            draws.rough = max(draws.rough, off if math.isfinite(off) else 0.0)
        return self

    def settle(self) -> None:
        """Make draws that are known by now part of the ordinary numbers."""
        self.follow_whole()
        terms, draws = self.terms, self.tape.draws
        if terms.block is not None and terms.block.is_fresh:
            return
        if terms.image is not None:
            source = terms.image.source
            known = draws.settled(
                source.centre.ravel(), source.index, source.coef, mixes=False
            )
            if known[1] is source.index:
                return
            if not (known[1] >= 0).any():
                self._become(terms, known[0].reshape(source.shape))
                return
        mean, index, coef, _ = draws.settled(
            self.centre.ravel(), self.index, self.coef, mixes=False
        )
        if index is not self.index:
            used = (index >= 0).any(axis=0)
            self.terms = Terms(index[:, used], coef[:, used])
            self.centre = mean.reshape(self.shape)
            self.bare = False

    def looked_at(self, how: str) -> Array:
        """Return the numbers as an ordinary array, with a note on the tape."""
        if self.noisy and self.tape.closed:
            # It stays what it is, so that the next execution that uses it is told, too.
            return self.tape.observe(self, how).reshape(self.shape)
        self.follow_whole()
        keeps = self.tape.mode.keeps and not self.is_complex
        if self.is_choice:
            self._decide()
        elif self.noisy and keeps and type(self).outcomes(self):
            return self.centre
        elif self.noisy:
            image = self.terms.image
            if (
                image is not None
                and not self.tape.is_released(how)
                and image.injective()
            ):
                value = image.source.copy().looked_at(how)
                self._become(self.terms, value)
                image.origin._learn(image.source, value)
            elif self.is_complex:
                seen = self.both().looked_at(how)
                self._set(_whole_of(*seen))
            else:
                whole = self.on_lattice()
                flat = self.tape.observe(self, how)
                self._set((flat.astype(np.intp) if whole else flat).reshape(self.shape))
        return self.centre

    def on_some_lattice(self) -> bool:
        """Whether each entry is one draw on a lattice, whatever was added to it."""
        draws = self.index
        if draws.shape[1] != 1 or (draws < 0).any():
            return False
        kinds = np.unique(self.tape.draws.families[draws])
        return all(map(lattice_of, kinds.tolist()))

    def is_finite(self) -> bool:
        """Whether its entries are made of draws of finitely many integers alone."""
        draws = self.index[self.index >= 0]
        kinds = np.unique(self.tape.draws.families[draws]).tolist()
        return all(law is not None and law.finite for law in map(lattice_of, kinds))

    def is_whole(self) -> bool:
        """Whether its entries are integers, whatever the draws on a lattice are."""
        whole = not ((self.centre % 1).any() or (self.coef % 1).any())
        return whole and self.on_some_lattice()

    def on_lattice(self) -> bool:
        """Whether its entries are draws, or multiples of draws, that are integers."""
        if not self.bare:
            return False
        block, families = self.terms.block, self.tape.draws.families
        kinds = [block.family] if block else np.unique(families[self.index]).tolist()
        return all(map(lattice_of, kinds)) and not (self.coef % 1).any()

    def _set(self, value: NDArray[Any]) -> None:
        """Become ordinary numbers."""
        self.centre, self.bare = value, False
        self.terms = Terms.none(value.size)
        self._write_back()

    def _decide(self) -> None:
        """Become what was chosen."""
        block, factor = self.terms.block, self.terms.factor
        assert block is not None
        assert block.choose is not None
        chosen = block.choose(block.values).reshape(self.shape)
        block.spend(partly=True)
        if factor == 1 and not self.centre.any():
            self._set(chosen)
        else:
            self._set(self.centre + factor * chosen)

    def _learn(self, source: Any, value: Array) -> None:
        """Become what is known of the source of an image, if still the same as it."""
        if self.terms is source.terms and np.array_equal(self.centre, source.centre):
            self._set(value.copy())

    def _become(self, terms: Terms, value: Array) -> None:
        """Become ordinary numbers, the source of the image having some value."""
        assert terms.image is not None
        with np.errstate(all="ignore"):
            noise = value - terms.image.source.centre
            self._set(np.asarray(self.centre + terms.image.apply(noise)))

    # -- complex numbers, whose parts are followed as real ones

    @property
    def real(self) -> Any:
        return self.part(0) if self.is_complex else self

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        return self.part(1) if self.is_complex else np.zeros(self.shape)

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def conj(self) -> Any:
        terms = self.terms
        if self.is_complex:
            terms = Terms(self.index, self.coef.conj())
        return type(self)(self.tape, self.centre.conj(), terms, bare=self.bare)

    conjugate = conj

    def part(self, side: int) -> Any:
        """Return the real part, or the imaginary one: what is written there is here."""
        mean = (self.centre.real, self.centre.imag)[side]
        coef = (self.coef.real, self.coef.imag)[side]
        index = np.where(coef != 0, self.index, -1)
        order = np.argsort(index < 0, axis=1, kind="stable")
        width = int((index >= 0).sum(axis=1).max(initial=0))
        terms = [np.take_along_axis(e, order, axis=1)[:, :width] for e in (index, coef)]
        made = type(self)(self.tape, mean, Terms(*terms), bare=self.bare)
        made.part_of = self, side
        return made

    def both(self) -> Any:
        """Return both parts as one array of shape (2, ...)."""
        kind: Any = type(self)
        joined = kind.joined(self.tape, [self.part(0), self.part(1)])
        return joined.reshape((2, *self.shape))

    def put(self, side: int, part: Any) -> None:
        """Let the real part, or the imaginary one, be another."""
        parts = [self.part(0), self.part(1)]
        parts[side] = part
        self.centre[...] = _whole_of(*(each.centre for each in parts))
        self.bare = all(each.bare for each in parts)
        coefs = [ways * each.coef for ways, each in zip((1, 1j), parts, strict=True)]
        index = np.concatenate([each.index for each in parts], axis=1)
        self.terms = Terms(index, np.concatenate(coefs, axis=1))

    def _write_back(self) -> None:
        """Let the numbers that this is a part of have what was written here."""
        if self.part_of is not None:
            whole, side = self.part_of
            whole.put(side, self)

    def follow_whole(self) -> None:
        """Be known where the numbers that this is a part of are."""
        if self.part_of is not None and self.noisy and not self.part_of[0].noisy:
            whole, side = self.part_of
            self._set((whole.centre.real, whole.centre.imag)[side])


def _whole_of(real: Array, imag: Array) -> NDArray[Any]:
    """Return complex numbers by their parts."""
    whole = np.empty(np.shape(real), dtype=np.complex128)
    whole.real, whole.imag = real, imag
    return whole
