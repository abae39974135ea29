"""What Jinja sees as `target`: packages ask it which SQL a warehouse takes."""

from __future__ import annotations

import functools
from typing import Any

from dbt.config.profile import Profile

from dbt.adapters.ktk.credentials import KtkCredentials


def show_target_type() -> None:
    """Let `target.type` be what the profile's `target_type` says: `spark`, unless it says else.

    dbt fills it with the adapter's own name, and packages then write SQL of no engine in
    particular. The project file is rendered before there is an adapter, so it is dbt's own class
    that has to know.
    """
    of_dbt = Profile.to_target_dict
    if hasattr(of_dbt, "__wrapped__"):
        return

    @functools.wraps(of_dbt)
    def to_target_dict(profile: Profile) -> dict[str, Any]:
        target = of_dbt(profile)
        if isinstance(profile.credentials, KtkCredentials):
            target["type"] = profile.credentials.target_type
        return target

    Profile.to_target_dict = to_target_dict  # type: ignore[assignment]
