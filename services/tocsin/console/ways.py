"""How and when the person wants to be told, from the settings."""

from collections.abc import Callable
from datetime import datetime, tzinfo
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tocsin.console.core.quiet import BadHours, hours
from tocsin.console.notifier import Ways
from tocsin.console.settings import ConsoleSettings
from tocsin.console.webhook import Webhook
from tocsin.contract.refusals import Code, Refusal


def minute_in(zone: tzinfo | None) -> Callable[[int], int]:
    """The minute of the day that clocks show at a moment (UTC ms) in a time zone; None: that of this machine."""

    def minute(moment_ms: int) -> int:
        local = datetime.fromtimestamp(moment_ms / 1000, zone)
        return 60 * local.hour + local.minute

    return minute


def ways_of(settings: ConsoleSettings, port: int) -> Ways | Refusal:
    """As the settings have it, for a console on `port`. Refuses: broken_settings, naming the one and never the address."""
    try:
        spans = hours(settings.quiet_hours)
    except BadHours as error:
        return Refusal(Code.BROKEN_SETTINGS, f"TOCSIN_QUIET_HOURS: {error}")
    try:
        zone = ZoneInfo(settings.timezone) if settings.timezone else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return Refusal(Code.BROKEN_SETTINGS, f"TOCSIN_TIMEZONE: {settings.timezone!r} is no time zone such as Europe/Berlin")
    webhook = None
    if settings.notify_url:
        try:
            parts = urlsplit(settings.notify_url)
            known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            known = False
        if not known:
            return Refusal(Code.BROKEN_SETTINGS, "TOCSIN_NOTIFY_URL is no address of the form https://HOST/TOPIC")
        webhook = Webhook(settings.notify_url, settings.notify_token_file)
    return Ways(webhook, spans, minute_in(zone), settings.notify_click or f"http://127.0.0.1:{port}/")
