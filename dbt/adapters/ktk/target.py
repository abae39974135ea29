"""What Jinja sees as `target`: packages ask it which SQL a warehouse takes."""

from __future__ import annotations

import functools
import sys
from typing import Any

from dbt.adapters.ktk.credentials import KtkCredentials


def show_target_type() -> None:
    """Let `target.type` be what the profile's `target_type` says: `spark`, unless it says else.

    dbt fills it with the adapter's own name, and packages then write SQL of no engine in
    particular. The project file is rendered before there is an adapter, so it is dbt's own class
    that has to know; it has loaded this package where there is a dbt.
    """
    profiles = getattr(sys.modules.get("dbt.config.profile"), "Profile", None)
    of_dbt = getattr(profiles, "to_target_dict", None)
    if profiles is None or of_dbt is None or hasattr(of_dbt, "__wrapped__"):
        return

    @functools.wraps(of_dbt)
    def to_target_dict(profile: Any) -> dict[str, Any]:
        target: dict[str, Any] = of_dbt(profile)
        if isinstance(profile.credentials, KtkCredentials):
            target["type"] = profile.credentials.target_type
        return target

    profiles.to_target_dict = to_target_dict
