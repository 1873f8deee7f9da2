"""How a server of our own is set up: on this machine only, with a secret, and on disk before it answers."""

from __future__ import annotations

import json
from pathlib import Path

from msgspec import Struct


class ServerSettings(Struct, frozen=True):
    """A server's folder, its port (0: any that is free), and the secret that lets one in."""

    folder: Path
    token: str
    port: int = 0
    host: str = "127.0.0.1"
    max_payload: int = 8 * 1024 * 1024

    @property
    def config_path(self) -> Path:
        """The file that the server reads."""
        return self.folder / "server.conf"

    @property
    def ports_path(self) -> Path:
        """The folder that the server writes its ports to."""
        return self.folder / "ports"

    @property
    def log_path(self) -> Path:
        """What the server says."""
        return self.folder / "server.log"

    def text(self) -> str:
        """The configuration, in nats-server's own language (JSON strings are strings there too)."""
        lines = [
            f"host: {json.dumps(self.host)}",
            f"port: {self.port or -1}",
            'server_name: "flyball"',
            f"ports_file_dir: {json.dumps(str(self.ports_path))}",
            f"log_file: {json.dumps(str(self.log_path))}",
            "logfile_size_limit: 10MB",
            f"max_payload: {self.max_payload}",
            f"authorization {{ token: {json.dumps(self.token)} }}",
            "jetstream {",
            f"  store_dir: {json.dumps(str(self.folder / 'data'))}",
            "  # What was answered is on disk: it survives a power cut.",
            "  sync_interval: always",
            "}",
        ]
        return "\n".join(lines) + "\n"
