"""Reading text in pictures with the three models of the package rapidocr-onnxruntime: drawing, what goes in, what comes out.

Detection gives each pixel's probability to be text; direction tells whether a line is upside down; recognition gives
per column a probability for each character. The models are run by a function that the caller passes.
"""
import dataclasses

import numpy as np
import onnx
from PIL import Image, ImageDraw, ImageFont

import harness

MODELS = {"detection": "ch_PP-OCRv4_det_infer.onnx", "direction": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
          "recognition": "ch_PP-OCRv4_rec_infer.onnx"}
LINE_HEIGHT = 48    # of the recognition and direction models
DETECTION_STEP = 32  # sizes that the detection model takes are multiples
TEXT_THRESHOLD = 0.3  # of a pixel; the package's config.yaml has the same
UNCLIP_RATIO = 1.6    # how much detected cores are grown; config.yaml, too


def model_path(kind):
    return harness.package_file("rapidocr_onnxruntime", "models", MODELS[kind])


def draw(lines, size, font_size=36):
    """Black text on a light ground with a few distractions, as RGB."""
    image = Image.new("RGB", size, (246, 244, 236))
    pen = ImageDraw.Draw(image)
    rng = np.random.default_rng(7)
    for _ in range(12):
        x, y = int(rng.integers(0, size[0])), int(rng.integers(0, size[1]))
        pen.ellipse([x, y, x + 3, y + 3], fill=(200, 205, 215))
    pitch = size[1] / (len(lines) + 0.5)
    for i, line in enumerate(lines):
        pen.text((size[0] * 0.06, pitch * (i + 0.4)), line, fill=(25, 30, 60), font=ImageFont.load_default(font_size))
    return image


def pixels(image):
    """(1, 3, H, W), from -1 to 1, blue first: the models come from a world where images are BGR."""
    array = np.asarray(image, np.float32)[:, :, ::-1] / 127.5 - 1
    return np.ascontiguousarray(array.transpose(2, 0, 1)[None])


def detection_input(image):
    size = [max(1, round(s / DETECTION_STEP)) * DETECTION_STEP for s in image.size]
    return pixels(image.resize(size, Image.BILINEAR))


def line_input(image, width=0):
    """A line of text at the height that the models want, padded to at least `width`."""
    wide = max(1, round(image.width * LINE_HEIGHT / image.height))
    array = pixels(image.resize((wide, LINE_HEIGHT), Image.BICUBIC))
    return np.pad(array, [(0, 0), (0, 0), (0, 0), (0, max(0, width - wide))])


def components(mask):
    """Boxes (left, top, right, bottom) of the regions of connected pixels."""
    boxes, left = [], mask.copy()
    for y, x in np.argwhere(mask):
        if not left[y, x]:
            continue
        left[y, x] = False
        stack, box = [(y, x)], [x, y, x, y]
        while stack:
            b, a = stack.pop()
            box = [min(box[0], a), min(box[1], b), max(box[2], a), max(box[3], b)]
            for v, u in ((b - 1, a), (b + 1, a), (b, a - 1), (b, a + 1)):
                if 0 <= v < mask.shape[0] and 0 <= u < mask.shape[1] and left[v, u]:
                    left[v, u] = False
                    stack.append((v, u))
        boxes.append((box[0], box[1], box[2] + 1, box[3] + 1))
    return boxes


def text_boxes(probability, image_size):
    """Boxes of text lines in the image's pixels, top to bottom, from detection's (1, 1, H, W)."""
    grid = probability[0, 0]
    scale = image_size[0] / grid.shape[1], image_size[1] / grid.shape[0]
    boxes = []
    for left, top, right, bottom in components(grid > TEXT_THRESHOLD):
        width, height = right - left, bottom - top
        if min(width, height) < 4:
            continue
        grow = width * height * UNCLIP_RATIO / (2 * (width + height))
        boxes.append((max(0, round((left - grow) * scale[0])), max(0, round((top - grow) * scale[1])),
                      min(image_size[0], round((right + grow) * scale[0])), min(image_size[1], round((bottom + grow) * scale[1]))))
    return sorted(boxes, key=lambda box: (box[1], box[0]))


def alphabet():
    """Character by class of the recognition model, which carries the list as metadata; class 0 is "none"."""
    metadata = {p.key: p.value for p in onnx.load(model_path("recognition"), load_external_data=False).metadata_props}
    return [""] + metadata["character"].splitlines() + [" "]


def decode(probabilities, characters):
    """(text, mean probability) of one line's (T, classes): best class of each column, repetitions and "none" dropped."""
    best = probabilities.argmax(1)
    keep = (best != 0) & (best != np.concatenate([[0], best[:-1]]))
    if not keep.any():
        return "", 0.0
    return "".join(characters[c] for c in best[keep]), float(probabilities.max(1)[keep].mean())


@dataclasses.dataclass
class Line:
    text: str
    probability: float
    box: tuple


def read(image, run):
    """The lines of text in an image; run(kind, array) gives a model's only output."""
    characters, lines = alphabet(), []
    for box in text_boxes(run("detection", detection_input(image)), image.size):
        crop = image.crop(box)
        upside_down = run("direction", line_input(crop, 192)[:, :, :, :192])[0]
        if upside_down[1] > 0.9:
            crop = crop.rotate(180)
        text, probability = decode(run("recognition", line_input(crop, 320))[0], characters)
        lines.append(Line(text, probability, box))
    return lines
