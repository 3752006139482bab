"""Reads the paper's end tasks, from a local folder or from where their authors published them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from datasets import DownloadConfig, DownloadManager

from tartan.data.table import Table, open_table
from tartan.data.text_task import SPLITS, TextSource
from tartan.errors import UserError, first_line
from tartan.files import OFFLINE, check_reachable, check_sha256


@dataclass(frozen=True)
class DomainFile:
    """A published file of domain text.

    Attributes:
        size: the auxiliary size that the file is meant for, in multiples of the training examples.
        local: its name under `data_dir`.
        public: its path below the task's `public_url`.
        sha256: its checksum; None where none is known.
    """

    size: float
    local: str
    public: str
    sha256: str | None = None


@dataclass(frozen=True)
class PaperTask(TextSource):
    """A task of the paper, in the files that its authors published with their code.

    `name` is also the folder's name under `data_dir`.

    Attributes:
        public_url: address of the folder in which the task is published.
        sha256: checksum of each labelled file, by name.
        cache_dir: folder for downloads.
        data_dir: a local folder that holds a folder for each task; None fetches from `public_url`.
        domain: the published files of domain text; empty where there are none.
    """

    public_url: str
    sha256: Mapping[str, str]
    cache_dir: str
    data_dir: str | None = None
    domain: Sequence[DomainFile] = field(default_factory=tuple)

    def tables(self) -> Mapping[str, Table]:
        files = {split: f"{split}.jsonl" for split in SPLITS}
        return {s: open_table(self._obtain(f, f, self.sha256[f])) for s, f in files.items()}

    def domain_file(self, size: float | None) -> Path:
        """Return the smallest published file that is large enough for `size`, else the largest."""
        if not self.domain:
            raise UserError(f"{self.name} has no domain text; give it: auxiliary.dapt.path=FILE")
        files = sorted(self.domain, key=lambda file: file.size)
        if self.data_dir is not None:  # the published archive may hold only some of the sizes
            files = [file for file in files if self._local(file.local).is_file()] or files[:1]
        enough = [file for file in files if size is not None and file.size >= size]
        chosen = enough[0] if enough else files[-1]
        return self._obtain(chosen.local, chosen.public, chosen.sha256)

    def _local(self, file: str) -> Path:
        folder = self.data_dir or Path(self.cache_dir, "downloads")
        return Path(folder).expanduser() / self.name / file

    def _obtain(self, local: str, public: str, sha256: str | None) -> Path:
        path, url = self._local(local), f"{self.public_url}/{public}"
        if self.data_dir is None and not path.is_file():
            check_reachable(url, f"data file {local}")
            # unlike torch.hub's, a download that ends early is an error
            config = DownloadConfig(
                cache_dir=path.parent, force_download=True, max_retries=0, disable_tqdm=True
            )
            try:
                fetched = Path(str(DownloadManager(download_config=config).download(url)))
            except Exception as error:  # of whichever client it uses
                raise UserError(f"could not fetch {url}: {first_line(error)}; {OFFLINE}") from error
            if sha256 is not None:
                check_sha256(fetched, sha256)
            fetched.replace(path)
        if sha256 is not None:
            check_sha256(path, sha256)
        return path
