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

from dataclasses import dataclass, field
from typing import Literal

from aberra.data.archives import Unpacking
from aberra.data.download import RemoteFile
from aberra.data.originals import CIFAR_ARCHIVE, MNIST_FILES

Kind = Literal["table", "images", "scans"]


@dataclass(frozen=True)
class DataSet:
    """A named public data set.

    Parameters
    ----------
    name : str
    kind : {"table", "images", "scans"}
        A table has X and y; images have a training and a test part; scans are a folder of volumes
        or an npz file of slices.
    what : str
        What it is, in a few words.
    shape : tuple of int
        Rows and columns; images, channels, height and width; or the number of subjects.
    licence, citation : str
        "restricted" means: to be evaluated on, not to be passed on.
    prepared : tuple of str
        Files or folders below the data folder that count as the set, first match first.
    reduced : tuple of str
        Files that hold a part of it; used when nothing else is there.
    files : tuple of RemoteFile
        The public originals; empty if no script may fetch them.
    original : str
        What the originals are read from: one of them, or their folder.
    anomalies : int, optional
        Rows of a table that are anomalies.
    unpacking : Unpacking, optional
        What to take out of the original, an archive.
    page : str
        Where a person reads more, and gets what no script may fetch.
    by_hand : str
        What a person has to do to get it; empty if a download does.
    """

    name: str
    kind: Kind
    what: str
    shape: tuple[int, ...]
    licence: str
    citation: str
    page: str
    prepared: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()
    files: tuple[RemoteFile, ...] = ()
    original: str = ""
    anomalies: int | None = None
    unpacking: Unpacking | None = None
    by_hand: str = ""

    @property
    def group(self) -> str:
        """The folder that it lies in, below the data folder."""
        return (self.original or self.prepared[0]).partition("/")[0]

    @property
    def checked(self) -> str:
        """What tells the right download from a wrong one."""
        if not self.files:
            return "by hand"
        if all(file.sha256 for file in self.files):
            return "sha256"
        return "md5" if all(file.known for file in self.files) else "unverified"

    @property
    def size(self) -> int | None:
        """Bytes to download, if published."""
        sizes = [file.size for file in self.files]
        return sum(s for s in sizes if s) if sizes and all(sizes) else None


DROPBOX = "https://www.dropbox.com/s/"
PYOD = "https://raw.githubusercontent.com/yzhao062/pyod/"
ADBENCH = (
    "https://raw.githubusercontent.com/Minqi824/ADBench/"
    "3dac8221081e190f157d78e93bfa8867f90d0965/adbench/datasets/Classical/"
)
ODDS_PAGE = "https://odds.cs.stonybrook.edu"


@dataclass(frozen=True)
class _Odds:
    """A .mat file of ODDS."""

    key: str  # of its address
    sha256: str
    mirror: str = ""  # commit and path in PyOD's repository
    file: str = field(default="", kw_only=True)  # its name there, where it is not that of the set


def _odds(group: str, name: str, what: str, shape: tuple[int, int, int], source: _Odds) -> DataSet:
    rows, columns, anomalies = shape
    first = f"{DROPBOX}{source.key}/{source.file or name}.mat?dl=1"
    addresses = (first, PYOD + source.mirror) if source.mirror else (first,)
    path = f"{group}/{name}.mat"
    return DataSet(
        name,
        "table",
        what,
        (rows, columns),
        "none stated",  # of UCI data, which ask to be cited
        "Rayana, S. (2016). ODDS Library. Stony Brook University.",
        ODDS_PAGE,
        prepared=(f"{group}/{name}.npz",),
        files=(RemoteFile(path, addresses, sha256=source.sha256, limit=1 << 28),),
        original=path,
        anomalies=anomalies,
    )


def _adbench(name: str, what: str, shape: tuple[int, int, int], file: str) -> DataSet:
    rows, columns, anomalies = shape
    path = f"odds_extra/{name}.npz"
    return DataSet(
        name,
        "table",
        what,
        (rows, columns),
        "BSD-2-Clause",
        "Han, S., Hu, X., Huang, H., Jiang, M., Zhao, Y. (2022). ADBench. NeurIPS.",
        "https://github.com/Minqi824/ADBench",
        prepared=(f"odds_extra/{name}.mat",),
        files=(RemoteFile(path, (f"{ADBENCH}{file}.npz",), limit=1 << 28),),
        original=path,
        anomalies=anomalies,
    )


_B247 = "b247c08568cbc8147f3fe873a925c4deff89b8b9/notebooks/data/"
_EF6D = "ef6d5e8dc828615f498286c1d6a22cbd02fd4cd2/notebooks/data/"

TABLES = (
    _odds(
        "odds",
        "satellite",
        "Landsat pixels; three small classes",
        (6435, 36, 2036),
        _Odds(
            "dpzxp8jyr9h93k5",
            "6feac3112b9c14e1c3e60afc437f2f3d29dc1000119c9f950c628078778d6aa0",
            _B247 + "satellite.mat",
        ),
    ),
    _odds(
        "odds",
        "arrhythmia",
        "electrocardiograms; rare diagnoses",
        (452, 274, 66),
        _Odds(
            "lmlwuspn1sey48r",
            "e4d47e499591ae31e5d7f0cd983367092353eac240f48e14c9b36457edb3460d",
            "1938f1c58ba7948359b098ab358b7ee920825282/data/arrhythmia.mat",
        ),
    ),
    _odds(
        "odds",
        "cardio",
        "cardiotocograms; pathologic ones",
        (1831, 21, 176),
        _Odds(
            "galg3ihvxklf0qi",
            "5e568b6a73711012c481fa6cc984ab9c68e9a4fa44d6aeb3b43efa381c3f695b",
            "71246f49518da607e0b879ac0d7446fdac3d8d3c/examples/example_data/cardio.mat",
        ),
    ),
    _odds(
        "odds",
        "shuttle",
        "space shuttle sensors; rare states",
        (49097, 9, 3511),
        _Odds(
            "mk8ozgisimfn3dw",
            "b6e396c92354d5dcf5036901e36dc58e2913f2d1a5e138c35a2bedf9c69db899",
            _B247 + "shuttle.mat",
        ),
    ),
    _odds(
        "odds",
        "thyroid",
        "thyroid tests; hyperfunction",
        (3772, 6, 93),
        _Odds(
            "bih0e15a0fukftb",
            "49155d7861b977e90808faf68343ff67a67f63090c2744d514dbb67ac68e7e33",
            _EF6D + "thyroid.mat",
        ),
    ),
    _odds(
        "odds",
        "satimage-2",
        "Landsat pixels; few cotton crops",
        (5803, 36, 71),
        _Odds(
            "hckgvu9m6fs441p",
            "95c37a07cea2cb201f6900d14f521510e10b6b2f0074c06ac46d3157440ec67b",
            _EF6D + "satimage-2.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "annthyroid",
        "thyroid tests; not normal",
        (7200, 6, 534),
        _Odds(
            "aifk51owxbogwav",
            "17a1012d005f2179eca3b87c0028eb5ca807794b359c33fa1f8ca5ac846c514f",
            _EF6D + "annthyroid.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "cover",
        "forest plots; willow among pine",
        (286048, 10, 2747),
        _Odds(
            "awx8iuzbu8dkxf1", "39acf6da4d31f08c2c28dc047249d8cd8ccd9d6fc299d9b5a08874ac92290c98"
        ),
    ),
    _adbench("http", "network connections; attacks", (567498, 3, 2211), "16_http"),
    _adbench("InternetAds", "images on web pages; ads", (1966, 1555, 368), "17_InternetAds"),
    _odds(
        "odds_extra",
        "ionosphere",
        "radar returns; bad ones",
        (351, 33, 126),
        _Odds(
            "lpn4z73fico4uup",
            "8ac5dfa6f47db4acdfe10615489b7f7dd015d79d5b381ce641e72baca3cfefb0",
            "ea62c2d0f10700f1e937f89c32f1b6aa8e61c817/examples/data/ionosphere.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "letter",
        "printed letters; odd ones",
        (1600, 32, 100),
        _Odds(
            "rt9i95h9jywrtiy", "f4a229b0e2a6b0c9157ce27fa760bcbac0f948cd690b2f5d51c120e5450f2195"
        ),
    ),
    _odds(
        "odds_extra",
        "lympho",
        "lymphography; rare diagnoses",
        (148, 18, 6),
        _Odds(
            "ag469ssk0lmctco",
            "031b907ecb50347720b08b38f8139d05635adeca9335a064d89d5569c27a5834",
            _B247 + "lympho.mat",
        ),
    ),
    _adbench("magic.gamma", "telescope events; hadrons", (19020, 10, 6688), "22_magic.gamma"),
    _adbench("mammography", "mammograms; calcifications", (11183, 6, 260), "23_mammography"),
    _odds(
        "odds_extra",
        "mnist_odds",
        "digits as 100 pixels; 6 among 0",
        (7603, 100, 700),
        _Odds(
            "n3wurjt8v9qi6nc",
            "9479e221f236684c09f3e11c7ad124725d34ecd301b9450425e8b113368413a6",
            _B247 + "mnist.mat",
            file="mnist",
        ),
    ),
    _odds(
        "odds_extra",
        "musk",
        "molecules; musks",
        (3062, 166, 97),
        _Odds(
            "we6aqhb0m38i60t",
            "50bbf414caceb66cfe6f6b1eb7c1ff7c6eb1e6d87173f7bb597ba55cd3dc5493",
            _EF6D + "musk.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "pendigits",
        "pen strokes; few zeros",
        (6870, 16, 156),
        _Odds(
            "1x8rzb4a0lia6t1",
            "7bc32ac83b3d583443acea8b1342a54aaa59eaedb9996af405322f473f3c22bc",
            _B247 + "pendigits.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "pima",
        "health records; diabetes",
        (768, 8, 268),
        _Odds(
            "mvlwu7p0nyk2a2r",
            "b6a5be8d548b9293d6958beceb1c77055591714d25d40d957eba87808456468f",
            "1fa3fcc5e728bc2be7eaf06798f3b8e4d6b981e6/pyod/test/data/pima.mat",
        ),
    ),
    _adbench("SpamBase", "word counts; spam", (4207, 57, 1679), "35_SpamBase"),
    _odds(
        "odds_extra",
        "vertebral",
        "spines; normal among abnormal",
        (240, 6, 30),
        _Odds(
            "5kuqb387sgvwmrb",
            "84b50b055f118f54b5c976650ccd284ab7c1adee822f8b3eb517c7e2c890d15e",
            _EF6D + "vertebral.mat",
        ),
    ),
    _odds(
        "odds_extra",
        "vowels",
        "spoken vowels; one speaker",
        (1456, 12, 50),
        _Odds(
            "pa26odoq6atq9vx", "51d5397bad1ceeda22b7cd44fd58125c5d603c9c2edb53aa59933330e259ac7b"
        ),
    ),
    _odds(
        "odds_extra",
        "wbc",
        "cell nuclei; malignant",
        (378, 30, 21),
        _Odds(
            "ebz9v9kdnvykzcb", "afe6b26953cc196b9a480318c903e0edef22529c2f61bd02082438c6e70630a7"
        ),
    ),
)

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
                ("http://biomedic.doc.ic.ac.uk/brain-development/downloads/IXI/IXI-T1.tar",),
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
