"""Make speech.npz, the spoken phrases of the chapter on attention in recurrent networks.

    python book/data/rnn-attention/make_speech.py          (needs espeak-ng; took about two minutes)

Building the book does not need this script: its output is kept in the repository. Each phrase is drawn from
a small grammar, spoken by espeak-ng with a voice, a speed and a pitch drawn at random, and turned into the
logarithms of the energies in mel-spaced bands. The same seed and the same version of espeak-ng (1.51) gave
the same file, byte for byte.

Contents of speech.npz
    bands     (total frames, N_BANDS) uint8: the frames of all phrases, one phrase after the other;
              level in steps of LEVEL_DB decibels above FLOOR_DB
    lengths   (N,) uint16: number of frames of each phrase
    texts     uint8: the phrases as bytes, separated by newlines
    voices    (N,) uint8: index into voice_names
    speeds    (N,) uint8: words a minute
    pitches   (N,) uint8: 0 to 99
    voice_names  uint8: the names as bytes, separated by newlines
    split     (N,) uint8: 0 training, 1 validation (no phrase of the training),
              2 likewise, but in a voice that is not in the training
    centres   (N_BANDS,) float32: centre of each band in Hz; hop float32: seconds from frame to frame
"""

import io
import subprocess
import wave
from pathlib import Path

import numpy as np

SEED = 20240611
N_TRAIN, N_VALIDATION, N_NEW_VOICE = 4000, 400, 200
VOICES = ["en-gb+m3", "en-gb+f2", "en-us+m1", "en-us+f4", "en-gb-scotland+m4", "en-gb-x-rp+f3"]
NEW_VOICE = "en-029+m2"

COUNTS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
ADJECTIVES = ["red", "blue", "green", "old", "small", "quiet", "happy", "cold", "heavy", "broken"]
THINGS = ["cat", "dog", "boat", "bird", "horse", "teapot", "robot", "lamp", "train", "spider"]
VERBS = ["sing", "sleep", "dance", "wait", "jump", "hide", "fly", "burn"]
PLACES = ["here", "at home", "in paris", "by the river", "under water", "on monday", "in winter", "all night"]

RATE, HOP, WINDOW, FFT_SIZE = 22050, 441, 551, 1024  # a window of 25 ms every 20 ms
N_BANDS, LOWEST_HZ, HIGHEST_HZ = 24, 80.0, 7600.0
FLOOR_DB, LEVEL_DB = -75.0, 2.0


def draw_phrase(rng):
    """A phrase of one to five parts: how many, of what kind, what, do what, where or when."""
    count = rng.integers(len(COUNTS))
    thing = str(rng.choice(THINGS)) + ("" if count == 0 else "s")
    verb = str(rng.choice(VERBS)) + ("s" if count == 0 else "")
    adjectives = [str(word) for word in rng.choice(ADJECTIVES, size=2, replace=False)]
    kind = int(rng.choice(6, p=[0.08, 0.16, 0.2, 0.2, 0.2, 0.16]))
    parts = [COUNTS[count], *adjectives[: (0, 1, 0, 1, 1, 2)[kind]], thing]
    if kind >= 2:
        parts.append(verb)
    if kind >= 4:
        parts.append(str(rng.choice(PLACES)))
    return " ".join(parts)


def speak(text, voice, speed, pitch):
    """Sound of a phrase, a float array in -1..1 at RATE samples a second."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-p", str(pitch), "--stdout", text]
    sound = subprocess.run(command, check=True, capture_output=True).stdout
    with wave.open(io.BytesIO(sound)) as file:
        if file.getframerate() != RATE:
            raise ValueError(f"espeak-ng speaks at {file.getframerate()} Hz, expected {RATE}")
        samples = np.frombuffer(file.readframes(file.getnframes()), dtype="<i2") / 32768
    loud = np.flatnonzero(np.abs(samples) > 0.01)  # silence before and after carries nothing
    return samples[max(loud[0] - HOP, 0) : loud[-1] + HOP]


def mel(hertz):
    return 2595 * np.log10(1 + hertz / 700)


def mel_bands():
    """Triangles (N_BANDS, FFT_SIZE // 2 + 1), equally spaced on the mel scale, and their centres in Hz."""
    edges = 700 * (10 ** (np.linspace(mel(LOWEST_HZ), mel(HIGHEST_HZ), N_BANDS + 2) / 2595) - 1)
    frequencies = np.arange(FFT_SIZE // 2 + 1) * RATE / FFT_SIZE
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    triangles = np.clip(np.minimum(rising, falling), 0, None)
    return triangles / triangles.sum(axis=1, keepdims=True), edges[1:-1]


def features(samples, triangles):
    """Levels (frames, N_BANDS) as uint8: steps of LEVEL_DB above FLOOR_DB."""
    starts = np.arange(0, max(len(samples) - WINDOW, 0) + 1, HOP)
    frames = samples[starts[:, None] + np.arange(WINDOW)] * np.hanning(WINDOW)
    power = np.abs(np.fft.rfft(frames, FFT_SIZE)) ** 2 / WINDOW
    decibels = 10 * np.log10(power @ triangles.T + 1e-12)
    return np.clip(np.round((decibels - FLOOR_DB) / LEVEL_DB), 0, 255).astype(np.uint8)


def main():
    rng = np.random.default_rng(SEED)
    triangles, centres = mel_bands()
    held_out, training, texts, split = set(), set(), [], []
    for group, size in ((1, N_VALIDATION), (2, N_NEW_VOICE), (0, N_TRAIN)):
        while split.count(group) < size:
            text = draw_phrase(rng)
            if text in held_out or (group and text in training):
                continue  # a held-out phrase is heard nowhere else
            (held_out if group else training).add(text)
            texts.append(text)
            split.append(group)
    split = np.array(split, dtype=np.uint8)
    voices = np.where(split == 2, len(VOICES), rng.integers(len(VOICES), size=len(texts))).astype(np.uint8)
    speeds = rng.integers(170, 241, size=len(texts)).astype(np.uint8)
    pitches = rng.integers(25, 76, size=len(texts)).astype(np.uint8)
    names = [*VOICES, NEW_VOICE]
    spoken = [
        features(speak(text, names[voice], speed, pitch), triangles)
        for text, voice, speed, pitch in zip(texts, voices, speeds, pitches, strict=True)
    ]
    target = Path(__file__).with_name("speech.npz")
    np.savez_compressed(
        target,
        bands=np.concatenate(spoken),
        lengths=np.array([len(frames) for frames in spoken], dtype=np.uint16),
        texts=np.frombuffer("\n".join(texts).encode(), dtype=np.uint8),
        voices=voices,
        speeds=speeds,
        pitches=pitches,
        voice_names=np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
        split=split,
        centres=centres.astype(np.float32),
        hop=np.float32(HOP / RATE),
    )
    print(f"{target.name}: {len(texts)} phrases, {target.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
