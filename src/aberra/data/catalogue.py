"""The entries of the registry: which public data sets there are, from where, under which terms.

Where the checksums come from, and who else publishes the same:

- ODDS tables: sha256 of the original .mat files, as the package OutlierDetectionData.jl verifies
  them at each download (src/ODDS/ODDS.jl). PyOD's repository, at fixed commits, is the second
  address; its copies count only if their bytes are the same.
- Tables that ODDS lacks, or has in a format that needs more libraries: ADBench's repository at a
  fixed commit. No checksum is published.
- MNIST: sizes on the authors' page; sha256 in many packages, all alike, among them Nix recipes for
  the authors' own address; md5 in torchvision.
- CIFAR-10: md5 on the author's page; sha256 and size in GoMLX and in torchvision for Ruby.
- IXI: md5 in TorchIO and in MONAI's tutorials.
- NFBS: size and md5 as the server's own metadata state them.
"""

from __future__ import annotations

from aberra.data.archives import Unpacking
from aberra.data.catalogue_tables import TABLES
from aberra.data.data_set import DataSet
from aberra.data.originals import CIFAR_ARCHIVE, MNIST_FILES
from aberra.data.transfer import RemoteFile

_MNIST_MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_MNIST_KNOWN = (  # size, sha256, md5; in the order of MNIST_FILES
    (
        9912422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    ),
    (
        28881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "d53e105ee54ea40749a09fcbcd1e9432",
    ),
    (
        1648877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "9fb629c4189551a2d022fa330f9573f3",
    ),
    (
        4542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
)

IMAGES = (
    DataSet(
        "mnist",
        "images",
        "handwritten digits, 10 classes",
        (70000, 1, 28, 28),
        "none stated",
        "LeCun, Y., Cortes, C., Burges, C. The MNIST database of handwritten digits.",
        "https://yann.lecun.com/exdb/mnist/",
        prepared=("images/mnist.npz",),
        files=tuple(
            RemoteFile(
                f"images/mnist/{name}", tuple(mirror + name for mirror in _MNIST_MIRRORS), *known
            )
            for name, known in zip(MNIST_FILES, _MNIST_KNOWN, strict=True)
        ),
        original="images/mnist",
    ),
    DataSet(
        "cifar10",
        "images",
        "small colour photographs, 10 classes",
        (60000, 3, 32, 32),
        "none stated",
        "Krizhevsky, A. (2009). Learning multiple layers of features from tiny images.",
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        prepared=("images/cifar10.npz",),
        reduced=("images/cifar10_subset.npz",),
        files=(
            RemoteFile(
                f"images/{CIFAR_ARCHIVE}",
                (f"https://www.cs.toronto.edu/~kriz/{CIFAR_ARCHIVE}",),
                170052171,
                "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                "c32a1d4ab5d03f1284b67883e8d87530",
            ),
        ),
        original=f"images/{CIFAR_ARCHIVE}",
    ),
)

SCANS = (
    DataSet(
        "ixi",
        "scans",
        "healthy brains, T1; three hospitals",
        (581,),
        "CC BY-SA 3.0",
        "IXI, Information eXtraction from Images (EPSRC GR/S21533/02).",
        "https://brain-development.org/ixi-dataset/",
        prepared=("mri/ixi185_t1_axial128.npz", "mri/ixi"),
        files=(
            RemoteFile(
                "mri/IXI-T1.tar",
                ("https://biomedic.doc.ic.ac.uk/brain-development/downloads/IXI/IXI-T1.tar",),
                md5="34901a0593b41dd19c1a1f746eac2d58",
                limit=1 << 33,
            ),
        ),
        original="mri/ixi",
        unpacking=Unpacking("mri/ixi", "*-T1.nii.gz", most_files=1000),
    ),
    DataSet(
        "nfbs",
        "scans",
        "healthy brains, T1, with brain masks",
        (125,),
        "see its page",
        "Puccio, B. et al. (2016). The Preprocessed Connectomes Project repository of manually "
        "corrected skull-stripped T1-weighted anatomical MRI data. GigaScience 5, 45.",
        "http://preprocessed-connectomes-project.org/NFB_skullstripped/",
        prepared=("mri/nfbs",),
        files=(
            RemoteFile(
                "mri/NFBS_Dataset.tar.gz",
                (
                    "https://fcp-indi.s3.amazonaws.com/data/Projects/RocklandSample/"
                    "NFBS_Dataset.tar.gz",
                ),
                1751464473,
                md5="06c467ac9ab6cbdb8185e6643879721d",
            ),
        ),
        original="mri/nfbs",
        unpacking=Unpacking("mri/nfbs", "*.nii.gz", strip=1, most_files=1000),
    ),
    DataSet(
        "edinburgh",
        "scans",
        "brain tumours, T1, with masks",
        (22,),
        "restricted",
        "Pernet, C. R. et al. (2016). A structural and functional magnetic resonance imaging "
        "dataset of brain tumour patients. Scientific Data 3, 160003.",
        "https://reshare.ukdataservice.ac.uk/851861/",
        prepared=("mri/edinburgh22_t1_2mm128.npz", "mri/edinburgh22_t1.npz", "mri/edinburgh"),
        by_hand="register there, and unpack it so that the patients' folders (17904, ...) lie in",
    ),
)

DATA_SETS = {entry.name: entry for entry in (*TABLES, *IMAGES, *SCANS)}
