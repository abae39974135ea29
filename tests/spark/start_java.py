"""The least work that an archive of classes can be made of: Java starts, and ends."""

from __future__ import annotations

import subprocess
import sys

from ktk_engine.java.find_java import find_java  # deep: Java alone

if __name__ == "__main__":
    java = find_java().executable
    subprocess.run([java, f"-XX:ArchiveClassesAtExit={sys.argv[1]}", "-version"], check=True)
