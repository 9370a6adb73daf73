"""What a person reads of a benchmark of live play. Pure."""

from collections.abc import Callable, Mapping
from typing import Any

LINES = 45  # functions listed
SIDES = ("parlor", "baseline", "bare")
_CHECKS = ("lost", "doubled", "gaps", "strangers")
_FIGURES: tuple[tuple[str, Callable[[Mapping[str, Any]], str]], ...] = (
    ("client moves a second", lambda side: f"{side['moves_per_second']:.0f}"),
    ("committed plies a second", lambda side: f"{side['plies_per_second']:.0f}"),
    ("move → ack, ms: p50 / p95 / p99 / max", lambda side: _spread(side["ack_ms"])),
    ("move → reply, ms: p50 / p95 / p99 / max", lambda side: _spread(side["reply_ms"])),
    ("connections, and their ms: p50 / p95", lambda side: f"{side['connections']}: {_spread(side['connect_ms'], 2)}"),
    ("moves looked up in the database", lambda side: str(side["moves_checked"])),
    ("lost / doubled / gaps / strangers", lambda side: " / ".join(str(side[name]) for name in _CHECKS)),
    ("errors", lambda side: str(sum(side["errors"].values()))),
    ("web: CPU ms a client move (cores busy)", lambda side: _cpu(side, "web")),
    ("  of which the event loop's thread", lambda side: f"{side['web_main_thread_ms_per_move']:.3f}"),
    ("clients: CPU ms a client move (cores busy)", lambda side: _cpu(side, "client")),
    ("cores busy with anything else", lambda side: f"{side['other_cpu_share']:.2f}"),
    ("a fixed piece of Python before / after, ms", lambda side: _spread(dict(enumerate(side["yardstick_ms"])))),
    ("web: RSS MiB start / end / peak", lambda side: " / ".join(f"{mib:.0f}" for mib in side["rss_mib"].values())),
)


def sound(side: Mapping[str, Any]) -> bool:
    """Whether every acknowledged move is stored exactly once, and nothing went wrong."""
    return not (any(side[name] for name in _CHECKS) or side["errors"])


def table(found: Mapping[str, Any]) -> str:
    """All results, for a terminal."""
    options = found["options"]
    pace = f"one move in {options['every']:g} s each" if options["every"] else "closed loop"
    title = f"{options['game']}, {options['clients']} clients, {pace}, {options['seconds']} s"
    lines = [title, "=" * len(title), ""]
    sides = {name: found[name] for name in SIDES if name in found}
    lines.append(f"{'':44}" + "".join(f"{name:>30}" for name in sides))
    lines += [f"{name:44}" + "".join(f"{show(side):>30}" for side in sides.values()) for name, show in _FIGURES]
    lines.append("")
    lines += [f"Parlor / {name}, client moves a second: {ratio:.2f}" for name, ratio in found.get("ratios", {}).items()]
    for name, side in sides.items():
        lines += [f"{name}: {count} × {error}" for error, count in side["errors"].items()]
    if "flood" in found["parlor"]:
        lines += _flood(found["parlor"]["flood"])
    if "functions" in found:
        lines += _profile(found)
    return "\n".join(lines)


def _flood(flood: Mapping[str, Any]) -> list[str]:
    """The effect of a flooding socket on everyone else."""
    sent = f"{flood['packets']} packets by {flood['connections']} connections, {flood['answers']} answers"
    return [
        "",
        f"Half of the time beside a socket that sends {flood['kind']} as fast as it can: {sent}.",
        f"move → ack undisturbed, ms: p50 / p95 / p99 / max   {_spread(flood['undisturbed'])}",
        f"move → ack disturbed,   ms: p50 / p95 / p99 / max   {_spread(flood['disturbed'])}",
        f"p95 disturbed / undisturbed: {flood['p95_ratio']:.2f}",
    ]


def _profile(found: Mapping[str, Any]) -> list[str]:
    """Shares of the samples, also as CPU microseconds per client move."""
    whole = 1000 * found["parlor"]["web_cpu_ms_per_move"]
    lines = ["", "Profiled: all figures above are lower than without."]
    heading = f"{'own':>6} {'µs':>6} {'cumul.':>7} {'µs':>6}"
    for title, name in (("package", "packages"), ("function", "functions")):
        lines += ["", f"{heading}  {title}"]
        for spot in found[name][:LINES]:
            own, cumulative = spot["own"], spot["cumulative"]
            lines.append(f"{own:6.1%} {own * whole:6.0f} {cumulative:7.1%} {cumulative * whole:6.0f}  {spot['name']}")
    by_cumulative = sorted(found["functions"], key=lambda spot: -spot["cumulative"])
    lines += ["", f"{'cumul.':>7} {'µs':>6}  function, by cumulative share"]
    lines += [f"{s['cumulative']:7.1%} {s['cumulative'] * whole:6.0f}  {s['name']}" for s in by_cumulative[:LINES]]
    return lines


def _spread(times: Mapping[Any, float], count: int = 4) -> str:
    return " / ".join(f"{value:.1f}" for value in list(times.values())[:count])


def _cpu(side: Mapping[str, Any], who: str) -> str:
    return f"{side[f'{who}_cpu_ms_per_move']:.3f} ({side[f'{who}_cpu_share']:.2f})"
