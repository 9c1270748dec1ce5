"""Versions that files beside a table state: two that contradict each other are said."""

from pathlib import Path

import pytest

from tsuishi.artifacts.network import Network
from tsuishi.extras.tables.stated_versions import contradictions
from tsuishi.extras.tables.table_files import table_files

# Lines of ryujaehun/pytorch-gpu-benchmark: README.md, and new_results/system_info.txt.
README = """* torch>=1.0.0
* Pytorch version `1.4`
* CUDA version = `10.0`
* CUDNN version= `7601`
* `nvcr.io/nvidia/pytorch:20.10-py3` (docker container in A100)
| CUDA Cores         | 3584 Cores     | 3840 Cores     |
"""
SYSTEM_INFO = "Number of GPUs on current device : 4\nCUDA Version : 10.0\nCudnn Version : 7600\n"


def found(root: Path, readme: str, beside: str) -> tuple[str, ...]:
    (root / "results").mkdir(parents=True)
    (root / "README.md").write_text(readme)
    (root / "results" / "info.txt").write_text(beside)
    return contradictions(root / "results", root)


def test_the_real_files_of_a_source_contradict_each_other_on_cudnn_alone(tmp_path: Path) -> None:
    assert found(tmp_path, README, SYSTEM_INFO) == ("cuDNN is 7600 in results/info.txt and 7601 in README.md",)


@pytest.mark.parametrize(
    ("readme", "beside", "names"),
    [
        ("PyTorch 1.4", "pytorch version: 1.4.0", []),
        ("cuDNN 7.6.1", "cuDNN version: 7601", []),
        ("cuDNN 9.1.0", "cuDNN: 90100", []),
        ("CUDA 10.0", "CUDA 10.2", ["CUDA"]),
        ("TensorFlow 1.13.1, CUDA 10.0", "TensorFlow = 1.12.0", ["TensorFlow"]),
        ("measured with CUDA 10.0 and CUDA 11.1", "CUDA 10.2", []),
        ("see https://example.org/cuda/10.1/install", "CUDA 10.2", []),
        ("torch>=1.0, docker pull nvidia/pytorch:20.10", "PyTorch 1.4.0", []),
        ("JAX 3 times as fast, cuda:0", "JAX 0.4.1, CUDA 12.4", []),
        ("the container TensorFlow 20.06-tf1-py3", "TensorFlow 1.15.2", []),
    ],
)
def test_what_counts_as_a_version(tmp_path: Path, readme: str, beside: str, names: list[str]) -> None:
    assert [text.split(" ")[0] for text in found(tmp_path, readme, beside)] == names


def test_a_table_brings_the_contradictions_beside_it_within_its_repository(
    tmp_path: Path,
) -> None:
    (tmp_path / "README.md").write_text("CUDA 9.0")
    repository = tmp_path / "repository"
    found(repository, "CUDA 10.0", "CUDA 10.2")
    (repository / ".git").mkdir()
    (repository / "results" / "table.csv").write_text("model,ms\nresnet50,4\n")
    table = repository / "results" / "table.csv"
    assert table_files(str(table), Network(None), None)[0].contradictions == (
        "CUDA is 10.2 in results/info.txt and 10.0 in README.md",
    )
    (repository / ".git").rmdir()
    assert table_files(str(table), Network(None), None)[0].contradictions == ()
