"""Results of torchvision, the judge of det's transforms and models.

Usage: torchvision_golden.py transforms FILE   writes {"bytes": image, "floats": image, "<case>/bytes": result, …}
       torchvision_golden.py shapes            prints {model: {parameter or buffer: shape}}
       torchvision_golden.py model NAME DIR    writes DIR/weights.pth and DIR/case.pth {"images", "logits"}
"""
import json
import sys
import warnings

import numpy
import PIL.Image
import torch
import torchvision
from torchvision.transforms import InterpolationMode, autoaugment
from torchvision.transforms import functional as F

warnings.simplefilter("ignore")
NEAREST, BILINEAR = InterpolationMode.NEAREST, InterpolationMode.BILINEAR
CLASSES, SIDE = 7, 64


def affine(**changes):
    values = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0], **changes}
    return lambda x: F.affine(x, **values)


def pil_resize(size):
    """Pillow's filter, which is exact; of bytes only."""
    def run(x):
        if x.is_floating_point():
            return F.resize(x, size, antialias=True)
        image = PIL.Image.fromarray(x.permute(1, 2, 0).numpy())
        return torch.from_numpy(numpy.array(F.resize(image, size))).permute(2, 0, 1).contiguous()
    return run


def operation(name, magnitude, **options):
    options = {"interpolation": NEAREST, "fill": None, **options}
    return lambda x: autoaugment._apply_op(x, name, magnitude, **options)


def hue(x, factor):
    """Bytes as since torchvision 0.15: 0.14 truncates instead of dividing the range into 256 parts."""
    return F.convert_image_dtype(F.adjust_hue(F.convert_image_dtype(x, torch.float32), factor), x.dtype)


def perspective_coefficients(start, end):
    """In double precision, as in later versions than 0.14."""
    rows = []
    for (x, y), (u, v) in zip(end, start):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    solved = numpy.linalg.solve(numpy.array(rows, dtype=float), numpy.array(start, dtype=float).reshape(8))
    return solved.astype(numpy.float32).tolist()


if torchvision.__version__.startswith("0.14"):
    F._get_perspective_coeffs = perspective_coefficients

CORNERS = [[0, 0], [42, 0], [42, 30], [0, 30]]
MOVED = [[3, 2], [38, 5], [40, 26], [6, 29]]
CASES = {
    "hflip": F.hflip,
    "vflip": F.vflip,
    "crop": lambda x: F.crop(x, -2, 5, 20, 50),
    "center_crop": lambda x: F.center_crop(x, [21, 30]),
    "resize": pil_resize([17, 23]),
    "resize up": pil_resize([60, 55]),
    "pad": lambda x: F.pad(x, [1, 2, 3, 4], fill=1),
    "pad edge": lambda x: F.pad(x, [1, 2, 3, 4], padding_mode="edge"),
    "pad reflect": lambda x: F.pad(x, [1, 2, 3, 4], padding_mode="reflect"),
    "pad symmetric": lambda x: F.pad(x, [1, 2, 3, 4], padding_mode="symmetric"),
    "grayscale": lambda x: F.rgb_to_grayscale(x),
    "grayscale 3": lambda x: F.rgb_to_grayscale(x, 3),
    "brightness": lambda x: F.adjust_brightness(x, 1.37),
    "contrast": lambda x: F.adjust_contrast(x, 0.43),
    "saturation": lambda x: F.adjust_saturation(x, 1.71),
    "hue": lambda x: hue(x, 0.29),
    "hue back": lambda x: hue(x, -0.43),
    "gamma": lambda x: F.adjust_gamma(x, 1.8, 1.1),
    "sharpness": lambda x: F.adjust_sharpness(x, 2.3),
    "smoothness": lambda x: F.adjust_sharpness(x, 0.0),
    "invert": F.invert,
    "posterize": lambda x: F.posterize(x, 3),
    "solarize": lambda x: F.solarize(x, 0.4 if x.is_floating_point() else 100.0),
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "rotate": lambda x: F.rotate(x, 33.0),
    "rotate bilinear": lambda x: F.rotate(x, -71.5, interpolation=BILINEAR, fill=[0.5]),
    "rotate expand": lambda x: F.rotate(x, 25.0, interpolation=BILINEAR, expand=True),
    "rotate quarter": lambda x: F.rotate(x, 90.0, expand=True),
    "rotate center": lambda x: F.rotate(x, 12.0, center=[4, 9], fill=[1.0]),
    "affine": affine(angle=14.0, translate=[3, -5], scale=1.3, shear=[7.0, -4.0]),
    "affine bilinear": affine(angle=-40.0, translate=[-6, 2], scale=0.7, shear=[0.0, 9.0], interpolation=BILINEAR,
                              fill=[0.25]),
    "affine center": affine(scale=2.0, center=[10, 20]),
    "perspective": lambda x: F.perspective(x, CORNERS, MOVED),
    "perspective nearest": lambda x: F.perspective(x, CORNERS, MOVED, interpolation=NEAREST, fill=[1.0]),
    "blur": lambda x: F.gaussian_blur(x, [5, 5], [1.3, 1.3]),
    "erase": lambda x: F.erase(x, 3, 4, 5, 6, torch.full((1, 1, 1), 1).to(x.dtype)),
    "ShearX": operation("ShearX", 0.3),
    "ShearY": operation("ShearY", -0.2, interpolation=BILINEAR),
    "TranslateX": operation("TranslateX", 7.9),
    "TranslateY": operation("TranslateY", -3.2, fill=[0.5, 0.5, 0.5]),
    "Rotate": operation("Rotate", -27.0),
    "Brightness": operation("Brightness", -0.5),
    "Color": operation("Color", 0.7),
    "Contrast": operation("Contrast", 0.6),
    "Sharpness": operation("Sharpness", -0.9),
    "Posterize": operation("Posterize", 5.0),
    "Solarize": operation("Solarize", 0.5),
    "AutoContrast": operation("AutoContrast", 0.0),
    "Equalize": operation("Equalize", 0.0),
}
ONLY_BYTES = {"posterize", "equalize", "Posterize", "Equalize"}


def transforms(path):
    torch.manual_seed(3)
    # A smooth image with noise, and a constant part.
    base = torch.nn.functional.interpolate(torch.rand(1, 3, 5, 6), (31, 43), mode="bilinear")[0]
    image = (base * 200 + torch.rand(3, 31, 43) * 40).to(torch.uint8)
    image[:, :4, :5] = 77
    out = {"bytes": image, "floats": image.float() / 255}
    for name, run in CASES.items():
        for kind in ("bytes",) if name in ONLY_BYTES else ("bytes", "floats"):
            out[name + "/" + kind] = run(out[kind]).contiguous()
    torch.save(out, path)


def shapes():
    """Without initial values, which take most of the time."""
    for name in dir(torch.nn.init):
        if name.endswith("_") and not name.startswith("_"):
            setattr(torch.nn.init, name, lambda tensor, *args, **kwargs: tensor)
    names = [name for name in sys.stdin.read().split()]
    print(json.dumps({name: {key: list(value.shape) for key, value in
                             getattr(torchvision.models, name)().state_dict().items()} for name in names}))


def model(name, directory):
    torch.manual_seed(5)
    options = {"image_size": SIDE} if name.startswith("vit") else {}
    net = getattr(torchvision.models, name)(num_classes=CLASSES, **options).eval()
    # Initial zeros would hide differences.
    with torch.no_grad():
        for key, value in net.state_dict().items():
            if key.endswith("running_var") or (value.dim() == 1 and key.endswith("weight")):
                value.uniform_(0.5, 1.5)
            elif key.endswith("running_mean") or key.endswith("bias"):
                value.normal_(0, 0.1)
            elif key.endswith("layer_scale"):
                value.uniform_(0.1, 0.5)
            elif key.endswith("head.weight") or key.endswith("class_token"):
                value.normal_(0, 0.05)
        images = torch.randn(2, 3, SIDE, SIDE)
        torch.save({"images": images, "logits": net(images)}, directory + "/case.pth")
    torch.save(net.state_dict(), directory + "/weights.pth")


{"transforms": transforms, "shapes": shapes, "model": model}[sys.argv[1]](*sys.argv[2:])
