"""AMD's GPUs, through amdsmi."""

from __future__ import annotations

import contextlib
import io
import time
from typing import TYPE_CHECKING, Any

from provml_lightning.errors import SamplerError, SamplerReadError, SamplerUnavailableError
from provml_lightning.samplers.base import (
    About,
    Accumulated,
    Channel,
    Counter,
    Gauge,
    Integral,
    Opened,
)
from provml_lightning.samplers.visible import Device, own_device, visible_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["open_amd"]

_MIB = 2**20
_RESOLUTION = 10_000_000  # the library itself remembers for a millisecond [ns]
_GLANCE = 0.2  # [s]
_PLAUSIBLE = 3.0  # how far energy over time may be from power, either way [1]
_HOTTEST = 1000  # what is above is not degrees but thousandths of them
_VISIBLE = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def open_amd(
    environ: Mapping[str, str],
    local_rank: int | None = None,
    *,
    pause: Callable[[float], object] = time.sleep,
    clock: Callable[[], int] = time.monotonic_ns,
) -> Opened:
    """Open the GPUs that this process may use: energy, usage, memory and temperature.

    Of several GPUs energy and memory are sums, usage is the mean, temperature the maximum. The
    energy counter is believed where it agrees with the power; else power is integrated. The second
    die of a card reads 0 W, for the first one tells for both; it is left out of the sum.

    Args:
        environ: Where ``HIP_VISIBLE_DEVICES`` and its kin stand.
        local_rank: Which of the devices is this process's; None: all of them.
        pause: Waits [s], to see the counter grow.
        clock: Returns the time [ns].

    Source:
        ``amdsmi_get_energy_count``, ``…power_info``, ``…gpu_activity``, ``…gpu_vram_usage``,
        ``…temp_metric``.
    """
    try:
        smi = _Smi()
        setting = next((environ[name] for name in _VISIBLE if name in environ), None)
        devices = own_device(visible_devices(setting, smi.devices()), local_rank)
    except SamplerError as error:
        return Opened(remarks=[f"AMD: {error}"])
    if not devices:
        return Opened(remarks=["AMD: no GPU that this process may use"])
    named = ", ".join(device.uuid for device in devices)
    energy, remarks = _energy(smi, devices, pause, clock)
    others: list[Channel] = []
    for opened in (_usage, _memory, _temperature):
        try:
            others.append(opened(smi, devices))
        except SamplerReadError as error:
            remarks.append(f"not told: {error}")
    hardware = {"gpu": ", ".join(map(smi.name, devices))}
    remarks.insert(0, f"AMD: measured: {named}")
    return Opened([*energy, *others], remarks, hardware=hardware)


class _Smi:
    """The library, opened once for the process; it has no count of who uses it."""

    def __init__(self) -> None:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                import amdsmi

                amdsmi.amdsmi_init()
        except Exception as error:  # without ROCm the import itself raises a KeyError, or worse
            raise SamplerUnavailableError(
                f"no amdsmi, or no driver ({type(error).__name__}: {error})"
            ) from error
        self.smi: Any = amdsmi

    def ask(self, call: str, *arguments: Any) -> Any:
        """Call a function of the library.

        Raises:
            SamplerReadError: It did not answer.
        """
        try:
            return getattr(self.smi, call)(*arguments)
        except Exception as error:  # its exceptions have no root of their own in all versions
            raise SamplerReadError(f"{call}: {type(error).__name__}: {error}") from error

    def devices(self) -> list[Device]:
        """Return all GPUs, in the order in which HIP counts them where it is known."""
        handles = self.ask("amdsmi_get_processor_handles")
        ranked = sorted(
            enumerate(handles), key=lambda pair: self._hip_index(pair[1], otherwise=pair[0])
        )
        return [Device(self._uuid(handle, number), handle) for number, handle in ranked]

    def name(self, device: Device) -> str:
        """Return what a card is called, and which it is."""
        try:
            told = self.ask("amdsmi_get_gpu_asic_info", device.handle)
        except SamplerReadError:
            return device.uuid
        name = told.get("market_name") if isinstance(told, dict) else None
        return f"{name} ({device.uuid})" if name and name != "N/A" else device.uuid

    def watts(self, device: Device) -> float:
        """Return the power of a card [W]; which of the fields tells it depends on the card."""
        told = self.ask("amdsmi_get_power_info", device.handle)
        for name in ("current_socket_power", "average_socket_power"):
            with contextlib.suppress(SamplerReadError):
                return _number(told, name)
        raise SamplerReadError(f"amdsmi_get_power_info: no power in {told!r}")

    def nanojoules(self, device: Device) -> int:
        """Return the energy counter [nJ]."""
        told = self.ask("amdsmi_get_energy_count", device.handle)
        # Versions before 6.2.1 called it "power".
        name = "energy_accumulator" if "energy_accumulator" in told else "power"
        return round(_number(told, name) * _number(told, "counter_resolution") * 1000)

    def _hip_index(self, handle: Any, otherwise: int) -> int:
        try:
            return int(_number(self.ask("amdsmi_get_gpu_enumeration_info", handle), "hip_id"))
        except SamplerReadError:
            return otherwise

    def _uuid(self, handle: Any, number: int) -> str:
        try:
            return f"GPU-{self.ask('amdsmi_get_gpu_device_uuid', handle)}"
        except SamplerReadError:
            return f"GPU-{number}"


def _energy(
    smi: _Smi,
    devices: Sequence[Device],
    pause: Callable[[float], object],
    clock: Callable[[], int],
) -> tuple[list[Channel], list[str]]:
    def counter(device: Device) -> Callable[[], int]:
        return lambda: smi.nanojoules(device)

    def power(device: Device) -> Callable[[], float]:
        return lambda: smi.watts(device)

    try:
        telling = [device for device in devices if smi.watts(device) > 0]
    except SamplerReadError as error:
        return [], [f"gpu_power, gpu_energy: {error}"]
    if not telling:
        return [], ["gpu_power, gpu_energy: 0 W: the other die of the card tells for both"]
    doubt = _doubt(smi, telling, pause, clock)
    if doubt is None:
        about = About("J", "amdsmi.energy", _RESOLUTION)
        meters = [Counter(counter(device), 1) for device in telling]
        return [Accumulated("gpu.energy", about, meters)], []
    about = About("J", "amdsmi.power", _RESOLUTION)
    integrals = [Integral(power(device)) for device in telling]
    return [Accumulated("gpu.energy", about, integrals)], [f"gpu_energy integrates power: {doubt}"]


def _doubt(
    smi: _Smi,
    devices: Sequence[Device],
    pause: Callable[[float], object],
    clock: Callable[[], int],
) -> str | None:
    """Return why the counter is not to be believed; None where it grows as the power says."""
    try:
        began, before = clock(), [smi.nanojoules(device) for device in devices]
        pause(_GLANCE)
        ended, after = clock(), [smi.nanojoules(device) for device in devices]
        for device, first, last in zip(devices, before, after, strict=True):
            grown, power = (last - first) / max(ended - began, 1), smi.watts(device)
            if not power / _PLAUSIBLE <= grown <= power * _PLAUSIBLE:
                return (
                    f"the counter of {device.uuid} grows by {grown:.4g} W, but its power is"
                    f" {power:.4g} W"
                )
    except SamplerReadError as error:
        return str(error)
    return None


def _usage(smi: _Smi, devices: Sequence[Device]) -> Channel:
    def mean() -> float:
        told = [smi.ask("amdsmi_get_gpu_activity", device.handle) for device in devices]
        return sum(_number(each, "gfx_activity") for each in told) / len(told)

    mean()
    return Accumulated("gpu.usage", About("%", "amdsmi"), [Integral(mean)], background=True)


def _memory(smi: _Smi, devices: Sequence[Device]) -> Channel:
    def read() -> tuple[float, float | None]:
        told = [smi.ask("amdsmi_get_gpu_vram_usage", device.handle) for device in devices]
        used, whole = (
            sum(_number(each, name) * _MIB for each in told) for name in ("vram_used", "vram_total")
        )
        return used, whole

    read()
    return Gauge("gpu.memory", About("B", "amdsmi"), read)


def _temperature(smi: _Smi, devices: Sequence[Device]) -> Channel:
    def celsius(device: Device) -> float:
        current = smi.smi.AmdSmiTemperatureMetric.CURRENT
        for name in ("EDGE", "HOTSPOT", "JUNCTION"):  # not every card has every sensor
            sensor = getattr(smi.smi.AmdSmiTemperatureType, name, None)
            with contextlib.suppress(SamplerReadError):
                told = smi.ask("amdsmi_get_temp_metric", device.handle, sensor, current)
                value = _number({name: told}, name)
                return value / 1000 if value > _HOTTEST else value
        raise SamplerReadError("amdsmi_get_temp_metric: no sensor answers")

    def read() -> tuple[float, float | None]:
        return max(celsius(device) for device in devices), None

    read()
    return Gauge("gpu.temperature", About("°C", "amdsmi"), read)


def _number(told: Mapping[str, Any], name: str) -> float:
    """Return a field as a number; what a card cannot tell is the text "N/A"."""
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SamplerReadError(f"{name} is {value!r}")
    return float(value)
