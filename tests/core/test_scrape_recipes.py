"""The recipes for Prometheus find every service that shows metrics."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def services() -> dict[str, dict]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


def recipe() -> dict:
    (found,) = yaml.safe_load((ROOT / "infra/prometheus/prometheus.yml").read_text())["scrape_configs"][0]["dns_sd_configs"]
    return found


def test_every_container_of_ours_shows_its_metrics_inside_the_network_and_is_scraped():
    ours = {name for name, service in services().items() if service.get("command", [""])[0] == "serve"}
    assert set(recipe()["names"]) == ours
    for name in ours:
        environment = services()[name]["environment"]
        assert (environment["TOCSIN_METRICS_PORT"], environment["TOCSIN_METRICS_BIND"]) == (recipe()["port"], "0.0.0.0"), name


def test_no_container_publishes_its_metrics():
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert [port for port in published if port.endswith(f":{recipe()['port']}")] == []
