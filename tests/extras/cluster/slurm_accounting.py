"""Slurm's accounts for a test cluster: a MariaDB and a slurmdbd, whose data lies in the cluster's folder."""

import shutil
from pathlib import Path

from tests.extras.cluster.programs import PATH, Programs, free_port, wait_for

_PROGRAMS = ("mariadbd", "mariadb-install-db", "slurmdbd")


def why_not() -> str:
    """What is missing for accounts; empty where nothing is."""
    lacking = [program for program in _PROGRAMS if not shutil.which(program, path=PATH)]
    return f"no {', '.join(lacking)} (Debian's packages mariadb-server and slurmdbd)" if lacking else ""


class Accounting:
    """A database and its daemon. `options`: the lines of slurm.conf that make a controller use them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, port = free_port(), free_port()
        self._socket = folder / "mariadb.socket"
        self.options = f"""
        AccountingStorageType=accounting_storage/slurmdbd
        AccountingStorageHost=localhost
        AccountingStoragePort={port}
        AccountingStoragePass={folder}/munge.socket
        """
        conf = folder / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text(f"""
        AuthType=auth/munge
        AuthInfo=socket={folder}/munge.socket
        DbdHost=localhost
        DbdPort={port}
        SlurmUser=root
        StorageType=accounting_storage/mysql
        StorageHost=127.0.0.1
        StoragePort={self._port}
        StorageUser=slurm
        StoragePass=slurm
        LogFile={folder}/log/slurmdbd.log
        PidFile={folder}/slurmdbd.pid
        """)

    def start(self, programs: Programs) -> None:
        """Start both, and make the cluster known; munge has to run."""
        data = ("--no-defaults", f"--datadir={self._folder}/mariadb", "--user=root")
        installed = programs.command("mariadb-install-db", *data, "--auth-root-authentication-method=normal")
        assert installed, "MariaDB made no database"
        place = (f"--socket={self._socket}", f"--port={self._port}", "--bind-address=127.0.0.1")
        programs.start("mariadbd", "mariadbd", *data, *place)
        grant = "CREATE USER slurm@'127.0.0.1' IDENTIFIED BY 'slurm'; GRANT ALL ON *.* TO slurm@'127.0.0.1'; SELECT 1"
        client = ("mariadb", "--no-defaults", f"--socket={self._socket}", "--user=root", f"--execute={grant}")
        wait_for(lambda: programs.command(*client))
        programs.start("slurmdbd", "slurmdbd", "-D")
        wait_for(lambda: programs.command("sacctmgr", "--immediate", "add", "cluster", "tsuishi"))
