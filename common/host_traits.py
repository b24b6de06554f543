"""The traits of a host, computed from its facts: the standard ones of os-traits. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import os_traits

from common.messages.facts import HostFacts

#: what every host of these drivers offers
_ALWAYS = frozenset(
    {
        os_traits.COMPUTE_NODE,
        os_traits.COMPUTE_IMAGE_TYPE_QCOW2,
        os_traits.COMPUTE_IMAGE_TYPE_RAW,
        os_traits.COMPUTE_NET_VIF_MODEL_VIRTIO,
        os_traits.COMPUTE_NET_VIF_MODEL_E1000,
        os_traits.COMPUTE_NET_VIF_MODEL_RTL8139,
        os_traits.COMPUTE_STORAGE_BUS_SCSI,
        os_traits.COMPUTE_STORAGE_BUS_IDE,
        os_traits.COMPUTE_STORAGE_BUS_VIRTIO,
        os_traits.COMPUTE_GRAPHICS_MODEL_VGA,
        os_traits.COMPUTE_FIRMWARE_BIOS,
    }
)

_ARCHITECTURES: Mapping[str, str] = {
    "x86_64": os_traits.COMPUTE_ARCH_X86_64,
    "aarch64": os_traits.COMPUTE_ARCH_AARCH64,
}

#: flag of /proc/cpuinfo → trait, where the trait isn't HW_CPU_X86_<FLAG>
_FLAGS: Mapping[str, str] = {
    "pni": "HW_CPU_X86_SSE3",
    "sse4_1": "HW_CPU_X86_SSE41",
    "sse4_2": "HW_CPU_X86_SSE42",
    "pclmulqdq": "HW_CPU_X86_CLMUL",
    "fma": "HW_CPU_X86_FMA3",
    "aes": "HW_CPU_X86_AESNI",
    "sha_ni": "HW_CPU_X86_SHA",
    "bmi1": "HW_CPU_X86_BMI",
    "rtm": "HW_CPU_X86_TSX",
    "avx512_vnni": "HW_CPU_X86_AVX512VNNI",
    "avx512_vbmi2": "HW_CPU_X86_AVX512VBMI2",
    "avx512_bitalg": "HW_CPU_X86_AVX512BITALG",
    "avx512_vpopcntdq": "HW_CPU_X86_AVX512VPOPCNTDQ",
    "amx_bf16": "HW_CPU_X86_AMXBF16",
    "amx_int8": "HW_CPU_X86_AMXINT8",
    "amx_tile": "HW_CPU_X86_AMXTILE",
    "svm": "HW_CPU_X86_AMD_SVM",
    "vmx": "HW_CPU_X86_INTEL_VMX",
    "sev": "HW_CPU_X86_AMD_SEV",
    "sev_es": "HW_CPU_X86_AMD_SEV_ES",
}

_STANDARD = frozenset(os_traits.get_traits())


def traits(facts: HostFacts) -> frozenset[str]:
    """Return the standard traits of a host, and those in its facts."""
    found = set(_ALWAYS) | set(facts.traits)
    if facts.architecture in _ARCHITECTURES:
        found.add(_ARCHITECTURES[facts.architecture])
    for flag in facts.cpu_flags:
        name = _FLAGS.get(flag, f"HW_CPU_X86_{flag.upper()}")
        if name in _STANDARD:
            found.add(name)
    return frozenset(found)
