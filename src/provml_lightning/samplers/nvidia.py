"""NVIDIA's GPUs, through NVML."""

from __future__ import annotations

import warnings
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

__all__ = ["open_nvidia"]

_NANO_PER_COUNT = 1_000_000  # a count is a millijoule
_RESOLUTION = 250_000_000  # counters and power are refreshed about every 100 ms [ns]


def open_nvidia(environ: Mapping[str, str], local_rank: int | None = None) -> Opened:
    """Open the GPUs that this process may use: energy, usage, memory and temperature.

    Of several GPUs energy and memory are sums, usage is the mean, temperature the maximum. A part
    of a GPU (MIG) has memory of its own; energy and temperature are those of the GPU that it is a
    part of, which is counted once.

    Args:
        environ: Where ``CUDA_VISIBLE_DEVICES`` stands.
        local_rank: Which of the devices is this process's; None: all of them.

    Source:
        ``nvmlDeviceGetTotalEnergyConsumption``, where it is missing the integral of
        ``nvmlDeviceGetPowerUsage``; field ``POWER_AVERAGE`` with scope ``MEMORY``;
        ``nvmlDeviceGetUtilizationRates``, ``…MemoryInfo`` and ``…Temperature``.
    """
    try:
        nvml = _Nvml()
    except SamplerError as error:
        return Opened(remarks=[f"NVIDIA: {error}"])
    try:
        devices = own_device(
            visible_devices(environ.get("CUDA_VISIBLE_DEVICES"), nvml.devices()), local_rank
        )
        channels, remarks = _channels(nvml, devices) if devices else ([], [])
    except SamplerError as error:
        return Opened(remarks=[f"NVIDIA: {error}"], close=[nvml.close])
    named = ", ".join(device.uuid for device in devices)
    told = f"measured: {named}" if devices else "no GPU that this process may use"
    hardware = {"gpu": ", ".join(map(nvml.name, devices))} if channels else {}
    return Opened(channels, [f"NVIDIA: {told}", *remarks], [nvml.close], hardware)


class _Nvml:
    """NVML with its errors translated."""

    def __init__(self) -> None:
        try:
            with warnings.catch_warnings():  # the old wheel of the same name warns of itself
                warnings.simplefilter("ignore")
                import pynvml
        except ImportError as error:
            raise SamplerUnavailableError(f"nvidia-ml-py is not installed ({error})") from error
        self.nvml: Any = pynvml
        self.ask("nvmlInit")

    def close(self) -> None:
        """Let go of the library; it counts how often it was opened."""
        self.ask("nvmlShutdown")

    def ask(self, call: str, *arguments: Any, **named: Any) -> Any:
        """Call a function of NVML.

        Raises:
            SamplerUnavailableError: This driver or GPU cannot tell.
            SamplerReadError: It could not tell this time.
        """
        try:
            return getattr(self.nvml, call)(*arguments, **named)
        except self.nvml.NVMLError as error:
            raise self._translated(call, error) from error
        except (AttributeError, TypeError, UnicodeDecodeError) as error:  # another version of it
            raise SamplerUnavailableError(f"{call}: {error}") from error

    def field(self, handle: Any, number: int, scope: int) -> float:
        """Return one field of a GPU; every field has a return code of its own."""
        (field,) = self.ask("nvmlDeviceGetFieldValues", handle, [(number, scope)])
        if field.nvmlReturn != self.nvml.NVML_SUCCESS:
            error = self.nvml.NVMLError(field.nvmlReturn)
            raise self._translated(f"field {number}", error) from error
        return float(field.value.uiVal)

    def name(self, device: Device) -> str:
        """Return what a GPU, or a part of one, is called, and which it is."""
        try:
            told = self.ask("nvmlDeviceGetName", device.handle)
        except SamplerError:
            return device.uuid
        return f"{told.decode() if isinstance(told, bytes) else told} ({device.uuid})"

    def devices(self) -> list[Device]:
        """Return all GPUs, in the driver's order, with their parts."""
        count = self.ask("nvmlDeviceGetCount")
        return [self._device(self.ask("nvmlDeviceGetHandleByIndex", i)) for i in range(count)]

    def _device(self, handle: Any) -> Device:
        device = Device(self._uuid(handle), handle)
        return Device(device.uuid, handle, parts=tuple(self._parts(device)))

    def _parts(self, whole: Device) -> list[Device]:
        parts = []
        try:
            most = self.ask("nvmlDeviceGetMaxMigDeviceCount", whole.handle)
        except SamplerError:  # it cannot be divided
            return []
        for number in range(most):
            try:
                part = self.ask("nvmlDeviceGetMigDeviceHandleByIndex", whole.handle, number)
            except SamplerError:  # no part of that number
                continue
            parts.append(Device(self._uuid(part), part, parent=whole))
        return parts

    def _uuid(self, handle: Any) -> str:
        uuid = self.ask("nvmlDeviceGetUUID", handle)
        return uuid.decode() if isinstance(uuid, bytes) else str(uuid)

    def _translated(self, call: str, error: Any) -> SamplerError:
        never = {
            getattr(self.nvml, f"NVML_ERROR_{name}", None)
            for name in (
                "NOT_SUPPORTED", "GPU_IS_LOST", "FUNCTION_NOT_FOUND", "LIBRARY_NOT_FOUND",
                "DRIVER_NOT_LOADED", "NO_PERMISSION", "INVALID_ARGUMENT",
            )
        }  # fmt: skip
        kind = SamplerUnavailableError if error.value in never else SamplerReadError
        return kind(f"{call}: {error}")


def _channels(nvml: _Nvml, devices: Sequence[Device]) -> tuple[list[Channel], list[str]]:
    wholes = list({device.whole.uuid: device.whole for device in devices}.values())
    shared = ".mig-parent" if any(device.parent for device in devices) else ""
    remarks: list[str] = []
    if shared:
        remarks.append(
            "a part of a GPU (MIG) has no power of its own: energy and power are the whole GPU's"
        )
    opened = [
        _energy(nvml, wholes, shared),
        _memory_energy(nvml, wholes, shared),
        _usage(nvml, devices),
        _memory(nvml, devices),
        _temperature(nvml, wholes),
    ]
    remarks += [each for each in opened if isinstance(each, str)]
    return [each for each in opened if isinstance(each, Channel)], remarks


def _energy(nvml: _Nvml, devices: Sequence[Device], shared: str) -> Channel | str:
    def reader(call: str, device: Device) -> Callable[[], int]:
        return lambda: int(nvml.ask(call, device.handle))

    def watts(device: Device) -> Callable[[], float]:
        return lambda: nvml.ask("nvmlDeviceGetPowerUsage", device.handle) / 1000

    counters = [reader("nvmlDeviceGetTotalEnergyConsumption", device) for device in devices]
    powers = [watts(device) for device in devices]
    if _answer(counters) is None:
        about = About("J", f"nvml.energy{shared}", _RESOLUTION)
        # The counter restarts with the driver; it does not wrap within any time that matters.
        return Accumulated(
            "gpu.energy", about, [Counter(read, _NANO_PER_COUNT) for read in counters]
        )
    if (why := _answer(powers)) is not None:
        return f"gpu_power, gpu_energy: {why}"
    about = About("J", f"nvml.power{shared}", _RESOLUTION)
    return Accumulated("gpu.energy", about, [Integral(read) for read in powers])


def _memory_energy(nvml: _Nvml, devices: Sequence[Device], shared: str) -> Channel | str:
    field = getattr(nvml.nvml, "NVML_FI_DEV_POWER_AVERAGE", 185)
    scope = getattr(nvml.nvml, "NVML_POWER_SCOPE_MEMORY", 2)

    def watts(device: Device) -> Callable[[], float]:
        def read() -> float:
            power = nvml.field(device.handle, field, scope)
            if power == 0:  # what GPUs without the sensor answer
                raise SamplerUnavailableError("the memory's power reads 0: this GPU has no sensor")
            return power / 1000

        return read

    powers = [watts(device) for device in devices]
    if (why := _answer(powers)) is not None:
        return f"gpu_memory_power: {why}"
    meters = [Integral(read) for read in powers]
    return Accumulated("gpu.memory_energy", About("J", f"nvml{shared}"), meters, background=True)


def _usage(nvml: _Nvml, devices: Sequence[Device]) -> Channel | str:
    def mean() -> float:
        rates = [nvml.ask("nvmlDeviceGetUtilizationRates", device.handle) for device in devices]
        return sum(float(rate.gpu) for rate in rates) / len(rates)

    if (why := _answer([mean])) is not None:
        return f"gpu_usage_pct: {why}"
    return Accumulated("gpu.usage", About("%", "nvml"), [Integral(mean)], background=True)


def _memory(nvml: _Nvml, devices: Sequence[Device]) -> Channel | str:
    def read() -> tuple[float, float | None]:
        told = [_memory_info(nvml, device) for device in devices]
        return sum(int(each.used) for each in told), sum(int(each.total) for each in told)

    if (why := _answer([read])) is not None:
        return f"gpu_memory_usage_gb, gpu_memory_usage_pct: {why}"
    return Gauge("gpu.memory", About("B", "nvml"), read)


def _memory_info(nvml: _Nvml, device: Device) -> Any:
    """Return what is in use; the second version leaves out what the driver reserves."""
    version = getattr(nvml.nvml, "nvmlMemory_v2", None)
    try:
        return nvml.ask("nvmlDeviceGetMemoryInfo", device.handle, version=version)
    except SamplerUnavailableError:  # an old driver
        return nvml.ask("nvmlDeviceGetMemoryInfo", device.handle)


def _temperature(nvml: _Nvml, devices: Sequence[Device]) -> Channel | str:
    core = getattr(nvml.nvml, "NVML_TEMPERATURE_GPU", 0)

    def read() -> tuple[float, float | None]:
        told = [nvml.ask("nvmlDeviceGetTemperature", device.handle, core) for device in devices]
        return float(max(told)), None

    if (why := _answer([read])) is not None:
        return f"gpu_temperature_c: {why}"
    return Gauge("gpu.temperature", About("°C", "nvml"), read)


def _answer(reads: Sequence[Callable[[], object]]) -> SamplerError | None:
    """Return why a reading is impossible; None if all of them answer."""
    try:
        for read in reads:
            read()
    except SamplerError as error:
        return error
    return None
