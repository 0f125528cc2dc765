"""The tables among the public data sets; catalogue.py says where their checksums come from."""

from __future__ import annotations

from dataclasses import dataclass, field

from aberra.data.data_set import DataSet
from aberra.data.transfer import RemoteFile

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
