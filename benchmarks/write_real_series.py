"""Write real_series.npz, the real series of data_kinds.py: from what aeon and tslearn ship, and from an electrocardiogram.

real_labels.npz has, of sets with classes of which training and test series are taken, the class of every series, and how
many of them are for training.

Run once, where both packages and SciPy are installed. The electrocardiogram is in wheels of SciPy before 1.10:

    pip download --no-deps --only-binary=:all: --python-version 3.10 scipy==1.9.3
    python benchmarks/write_real_series.py scipy-1.9.3-*.whl
"""

import argparse
import importlib.metadata
import io
import json
import pathlib
import zipfile

import aeon
import data_kinds
import numpy as np
from aeon.datasets import load_from_ts_file
from scipy.signal import find_peaks
from tslearn.datasets import CachedDatasets

AEON = pathlib.Path(aeon.__file__).parent / "datasets" / "data"
# Sets of series of one length in aeon, training before test: how many are taken, from the beginning; None takes all.
AEON_SETS = {
    "ACSF1": 60,
    "ArrowHead": None,
    "GunPoint": None,
    "ItalyPowerDemand": 400,
    "OSULeaf": 200,
    "PickupGestureWiimoteZ": None,
    "BasicMotions": None,
    "JapaneseVowels": 300,
}
# Recordings in aeon, and the length of the windows that they are cut into; the first and the last column are left out.
AEON_RECORDINGS = {
    "BloodPressure": ("KDD-TSAD_135/135_UCR_Anomaly_InternalBleeding16_TEST.csv", 150),
    "Gait": ("Daphnet_S06R02E0/S06R02E0.csv", 256),
}
RATE = 360  # of the electrocardiogram, samples a second
BEAT = (90, 162)  # samples before and after the steepest place of a beat


def of_aeon(name, count):
    parts = []
    for part in ("TRAIN", "TEST"):
        file = AEON / name / f"{name}_eq_{part}.ts"  # where the series as they were recorded differ in length
        parts.append(load_from_ts_file(str(file if file.exists() else AEON / name / f"{name}_{part}.ts")))
    (train, train_classes), (test, test_classes) = parts
    series = np.concatenate([train, test])[:count].transpose(0, 2, 1)
    return series, np.concatenate([train_classes, test_classes])[:count], len(train)


def windows(file, length):
    columns = len((AEON / file).open().readline().split(",")) - 1
    recording = np.loadtxt(AEON / file, delimiter=",", skiprows=1, usecols=range(1, columns))
    count = len(recording) // length
    return recording[: count * length].reshape(count, length, -1)


def of_tslearn(name):
    train, train_classes, test, test_classes = CachedDatasets().load_dataset(name)
    return np.concatenate([train, test]), np.concatenate([train_classes, test_classes]), len(train)


def heartbeats(wheel):
    with zipfile.ZipFile(wheel) as files, np.load(io.BytesIO(files.read("scipy/misc/ecg.dat"))) as arrays:
        ecg = (arrays["ecg"].astype(np.float64) - 1024) / 200  # millivolts
    energy = np.convolve(np.diff(ecg, prepend=ecg[0]) ** 2, np.ones(RATE // 10), "same")
    beats, _ = find_peaks(energy, height=4 * np.median(energy), distance=RATE // 4)
    before, after = BEAT
    whole = [beat for beat in beats if before <= beat <= len(ecg) - after]
    return np.stack([ecg[beat - before : beat + after] for beat in whole])[:, :, None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", help="of SciPy before 1.10")
    options = parser.parse_args()
    version = importlib.metadata.version
    sets, classes, sources = {}, {}, {}
    for name, count in AEON_SETS.items():
        (sets[name], *classes[name]), sources[name] = of_aeon(name, count), f"aeon {version('aeon')}, {name}"
    for name, (file, length) in AEON_RECORDINGS.items():
        sets[name], sources[name] = windows(file, length), f"aeon {version('aeon')}, windows of {file}"
    (sets["Trace"], *classes["Trace"]), sources["Trace"] = of_tslearn("Trace"), f"tslearn {version('tslearn')}, Trace"
    sets["Heartbeats"] = heartbeats(options.wheel)
    sources["Heartbeats"] = "scipy 1.9.3, misc/ecg.dat: beats of record 208 of the MIT-BIH Arrhythmia Database (PhysioNet)"
    arrays = {name: series.astype(np.float32) for name, series in sets.items()}
    for name, series in arrays.items():
        print(f"{name}: {' x '.join(map(str, series.shape))}")
        assert np.isfinite(series).all(), name
    np.savez_compressed(data_kinds.REAL_SERIES, sources=json.dumps(sources), **arrays)
    labels = {}
    for name, (names, count) in classes.items():
        if len(np.unique(names[:count])) == len(np.unique(names[count:])) > 1:
            labels[name] = np.unique(names, return_inverse=True)[1].astype(np.int8)
            labels[f"{name}/training"] = np.int64(count)
    np.savez_compressed(data_kinds.REAL_LABELS, **labels)


if __name__ == "__main__":
    main()
