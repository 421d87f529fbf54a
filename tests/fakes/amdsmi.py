"""AMD's library with cards of scripted power, and the oddities that real ones were seen with."""

# ruff: noqa: ARG002  the library's signatures

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.fakes.clock import ManualClock

__all__ = ["FakeAmdSmi", "FakeCard"]


class AmdSmiLibraryException(Exception):  # noqa: N818  the library's own name
    """What the library raises."""


@dataclass
class FakeCard:
    """A card that draws constant power.

    Attributes:
        watts: Its power [W].
        name: What it is called; the library says "N/A" where it does not know.
        energy_field: What this version calls the counter.
        wrong: How many times too fast the counter runs.
        power_field: Which of the two fields is a number.
    """

    watts: float = 200.0
    name: str = "Instinct MI300X"
    energy_field: str = "energy_accumulator"
    wrong: float = 1.0
    power_field: str = "current_socket_power"
    usage: Any = 40
    hip_id: Any = "N/A"
    temperature: int = 55


class FakeAmdSmi(ModuleType):
    """Stands in for the module ``amdsmi``."""

    AmdSmiTemperatureType = SimpleNamespace(EDGE="edge", HOTSPOT="hotspot")
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT="current")
    AmdSmiLibraryException = AmdSmiLibraryException

    def __init__(self, clock: ManualClock, *cards: FakeCard) -> None:
        super().__init__("amdsmi")
        self.clock = clock
        self.cards = cards

    def amdsmi_init(self) -> None:
        print("noise of the library")  # noqa: T201

    def amdsmi_get_processor_handles(self) -> list[FakeCard]:
        return list(self.cards)

    def amdsmi_get_gpu_device_uuid(self, card: FakeCard) -> str:
        return f"card-{self.cards.index(card)}"

    def amdsmi_get_gpu_asic_info(self, card: FakeCard) -> dict[str, Any]:
        return {"market_name": card.name}

    def amdsmi_get_gpu_enumeration_info(self, card: FakeCard) -> dict[str, Any]:
        return {"hip_id": card.hip_id}

    def amdsmi_get_energy_count(self, card: FakeCard) -> dict[str, Any]:
        microjoules = card.watts * card.wrong * self.clock.seconds * 1e6
        return {card.energy_field: int(microjoules / 15.259), "counter_resolution": 15.259}

    def amdsmi_get_power_info(self, card: FakeCard) -> dict[str, Any]:
        told = {"current_socket_power": "N/A", "average_socket_power": "N/A"}
        return {**told, card.power_field: int(card.watts)}

    def amdsmi_get_gpu_activity(self, card: FakeCard) -> dict[str, Any]:
        return {"gfx_activity": card.usage}

    def amdsmi_get_gpu_vram_usage(self, card: FakeCard) -> dict[str, int]:
        return {"vram_used": 1024, "vram_total": 65536}

    def amdsmi_get_temp_metric(self, card: FakeCard, sensor: str, metric: str) -> int:
        if sensor == "edge":
            raise AmdSmiLibraryException("not supported")
        return card.temperature
