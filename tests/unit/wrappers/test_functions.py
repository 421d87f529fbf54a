from __future__ import annotations

import asyncio
import inspect
import operator
import pickle
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from functools import lru_cache, partial
from typing import Any

import pytest

from prov4ml import ProvenanceTrackedFunction, get_metric
from provml_lightning.domain.records import FunctionCall
from provml_lightning.errors import ConfigurationError

Read = Callable[[type], list[Any]]


@ProvenanceTrackedFunction
def doubled(number: float, *, times: int = 2) -> float:
    """Return a number twice."""
    return number * times


class Scaler:
    factor = 3

    @ProvenanceTrackedFunction
    def scale(self, number: int) -> int:
        return self.factor * number

    @ProvenanceTrackedFunction
    @classmethod
    def name(cls) -> str:
        return cls.__name__

    @ProvenanceTrackedFunction
    @staticmethod
    def add(left: int, right: int) -> int:
        return left + right

    @classmethod
    @ProvenanceTrackedFunction
    def outer_name(cls) -> str:
        return cls.__name__

    @staticmethod
    @ProvenanceTrackedFunction
    def outer_add(left: int, right: int) -> int:
        return left + right

    def __call__(self, number: int) -> int:
        return number + 1


def _name(of: str) -> str:
    return f"{__name__}.{of}"


def test_the_signature_is_the_documented_one() -> None:
    parameters = inspect.signature(ProvenanceTrackedFunction).parameters

    assert {name: one.default for name, one in parameters.items()} == {
        "func": inspect.Parameter.empty,
        "context": None,
    }


def test_a_tracked_function_stays_what_it_was() -> None:
    assert doubled(1.5) == 3.0
    assert doubled.__name__ == "doubled"
    assert doubled.__qualname__ == "doubled"
    assert doubled.__module__ == __name__
    assert doubled.__doc__ == "Return a number twice."
    assert str(inspect.signature(doubled)) == "(number: 'float', *, times: 'int' = 2) -> 'float'"
    assert doubled.__wrapped__(2) == 4
    assert repr(doubled) == f"<ProvenanceTrackedFunction {_name('doubled')}>"


def test_methods_bind_as_functions_do(run: Any, records: Read) -> None:
    del run
    scaler = Scaler()
    assert scaler.scale(2) == 6
    assert Scaler.scale(scaler, 3) == 9
    assert scaler.name() == Scaler.name() == scaler.outer_name() == Scaler.outer_name() == "Scaler"
    assert scaler.add(1, 2) == Scaler.add(1, 2) == scaler.outer_add(1, 2) == 3
    assert str(inspect.signature(scaler.scale)) == "(number: 'int') -> 'int'"

    told = records(FunctionCall)
    assert told[0].function == _name("Scaler.scale")
    assert told[0].arguments == {"self": _name("Scaler"), "number": "2"}
    assert told[-1].arguments == {"left": "1", "right": "2"}


def test_names_tell_callables_apart(run: Any, records: Read) -> None:
    del run
    first = lambda: 1  # noqa: E731  a lambda is what is named here
    second = eval("lambda: 2")  # noqa: S307  a lambda of another line
    for func, args in (
        (first, ()),
        (second, ()),
        (len, ("abc",)),
        (str.upper, ("abc",)),
        ("abc".upper, ()),
        (partial(doubled.__wrapped__, 1), ()),
        (Scaler(), (1,)),
        (Scaler, ()),
    ):
        ProvenanceTrackedFunction(func)(*args)

    line = first.__code__.co_firstlineno
    test = "test_names_tell_callables_apart.<locals>"
    assert [call.function for call in records(FunctionCall)] == [
        _name(f"{test}.<lambda>:{line}"),
        _name("<lambda>:1"),
        "len",
        "str.upper",
        "str.upper",
        f"partial({_name('doubled')})",
        _name("Scaler"),
        _name("Scaler"),
    ]


def test_a_coroutine_lasts_until_it_returns(run: Any, records: Read) -> None:
    del run

    @ProvenanceTrackedFunction
    async def fetch(number: int) -> int:
        await asyncio.sleep(0.01)
        return number + 1

    assert asyncio.iscoroutinefunction(fetch)

    async def both() -> list[int]:
        return await asyncio.gather(fetch(1), fetch(2))

    assert asyncio.run(both()) == [2, 3]
    told = records(FunctionCall)
    assert [call.result for call in told] == ["2", "3"]
    assert all(call.seconds >= 0.01 for call in told)


def test_a_cancelled_coroutine_failed(run: Any, records: Read) -> None:
    del run
    tracked = ProvenanceTrackedFunction(asyncio.sleep)

    async def cancel() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tracked(60), 0.01)

    asyncio.run(cancel())
    (call,) = records(FunctionCall)
    assert call.error_type == "asyncio.exceptions.CancelledError"


def test_a_generator_takes_and_gives_all_that_the_bare_one_does(run: Any, records: Read) -> None:
    del run

    @ProvenanceTrackedFunction
    def echo() -> Generator[Any, Any, str]:
        got: Any = "ready"
        while got != "stop":
            try:
                got = yield got
            except KeyError:
                got = "caught"
        return "over"

    walk = echo()
    assert (next(walk), walk.send(5), walk.throw(KeyError("x"))) == ("ready", 5, "caught")
    with pytest.raises(StopIteration) as end:
        walk.send("stop")
    assert end.value.value == "over"

    left = echo()
    next(left)
    left.close()
    assert [(call.result, call.error_type) for call in records(FunctionCall)] == [
        ("'over'", None),
        (None, None),
    ]


def test_an_async_generator_takes_and_gives_all_that_the_bare_one_does(
    run: Any, records: Read
) -> None:
    del run

    @ProvenanceTrackedFunction
    async def echo() -> AsyncIterator[Any]:
        got: Any = "ready"
        while got != "stop":
            try:
                got = yield got
            except KeyError:
                got = "caught"

    async def walk() -> tuple[Any, ...]:
        source: Any = echo()
        seen = (await anext(source), await source.asend(5), await source.athrow(KeyError("x")))
        with pytest.raises(StopAsyncIteration):
            await source.asend("stop")
        left: Any = echo()
        await anext(left)
        await left.aclose()
        return seen

    assert asyncio.run(walk()) == ("ready", 5, "caught")
    assert [call.error_type for call in records(FunctionCall)] == [None, None]


def test_calls_inside_calls_and_threads_are_each_told_once(run: Any) -> None:
    @ProvenanceTrackedFunction
    def factorial(number: int) -> int:
        return 1 if number == 0 else number * factorial(number - 1)

    assert factorial(30) == 265252859812191058636308480000000
    threads = [threading.Thread(target=doubled, args=(1,)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run.close()

    name = "test_calls_inside_calls_and_threads_are_each_told_once.<locals>.factorial"
    assert sorted(get_metric(run.directory, _name(name))["step"]) == list(range(1, 32))
    assert sorted(get_metric(run.directory, _name("doubled"))["step"]) == list(range(1, 51))


def test_it_pickles_where_the_function_does() -> None:
    assert pickle.loads(pickle.dumps(doubled)) is doubled  # noqa: S301  our own bytes
    wrapped = ProvenanceTrackedFunction(operator.add, "Training")
    assert pickle.loads(pickle.dumps(wrapped))(1, 2) == 3  # noqa: S301
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(ProvenanceTrackedFunction(lambda: 1))


def test_attributes_of_the_function_are_there() -> None:
    cached = ProvenanceTrackedFunction(lru_cache(lambda number: number))
    cached(1)
    cached(1)
    assert cached.cache_info().hits == 1
    with pytest.raises(AttributeError):
        _ = cached.nothing


def test_what_cannot_be_called_is_refused_at_once() -> None:
    with pytest.raises(ConfigurationError, match="func=5 cannot be called"):
        ProvenanceTrackedFunction(5)  # type: ignore[arg-type]


def test_tracking_a_function_loads_no_torch() -> None:
    program = (
        "import sys, prov4ml; prov4ml.ProvenanceTrackedFunction(len)('abc');"
        " print('torch' in sys.modules, 'numpy' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], check=True, capture_output=True, text=True
    )
    assert told.stdout.split() == ["False", "False"]
