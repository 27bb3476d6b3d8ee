import type { File } from "@parley/protocol";
import { kindOf } from "./describe.ts";

/** The width of everything in a message that is not text: pictures, players, tiles. */
const MEDIA_WIDTH_PX = 320;
const MAX_HEIGHT_PX = 360;
/** Smaller pictures are enlarged to this, so that they can be seen and touched. */
const MIN_SIDE_PX = 96;

export interface Size {
  width: number;
  height: number;
}

/** A picture with a longer side of more than so many times the shorter one is cropped in lists. */
const MAX_RATIO = 3;
/** The largest boxes of cropped pictures. */
const LONG_BOX: Size = { width: 180, height: MAX_HEIGHT_PX };
const WIDE_BOX: Size = { width: MEDIA_WIDTH_PX, height: 120 };

/** Which pictures are cropped: a screenshot of a whole page is long, a panorama wide. Null: not cropped. */
export function cropOf({ width, height }: Pick<File, "width" | "height">): "long" | "wide" | null {
  if (!width || !height) return null;
  if (height > MAX_HEIGHT_PX && height > width * MAX_RATIO) return "long";
  return width > MEDIA_WIDTH_PX && width > height * MAX_RATIO ? "wide" : null;
}

const LIGHT_BYTES = 2_000_000;
const LIGHT_PIXELS = 16_000_000;

/** Whether a list can load the picture itself. Of a cropped picture, the preview has too few pixels. */
export const isLight = ({ size, width, height }: Pick<File, "size" | "width" | "height">) =>
  size <= LIGHT_BYTES && (width ?? 0) * (height ?? 0) <= LIGHT_PIXELS;

/** The box of a single picture: its own shape, within limits, so that nothing moves when it loads. */
function pictureBox({ width, height }: Size): Size {
  const crop = cropOf({ width, height });
  if (crop) return croppedBox({ width, height }, crop === "long" ? LONG_BOX : WIDE_BOX);
  const scale = Math.min(1, MEDIA_WIDTH_PX / width, MAX_HEIGHT_PX / height);
  return {
    width: Math.round(Math.max(MIN_SIDE_PX, width * scale)),
    height: Math.round(Math.max(MIN_SIDE_PX, height * scale)),
  };
}

const croppedBox = ({ width, height }: Size, most: Size): Size => ({
  width: Math.max(MIN_SIDE_PX, Math.min(width, most.width)),
  height: Math.max(MIN_SIDE_PX, Math.min(height, most.height)),
});

/** The box of a picture whose size is not known yet. */
const UNKNOWN_SIZE: Size = { width: MEDIA_WIDTH_PX, height: 240 };

/** Pictures of a message that are shown; the last one says how many more there are. */
export const SHOWN_PICTURES = 4;

/** The heights of grids of two, three and four pictures. */
const GRID_HEIGHTS_PX: readonly number[] = [0, 0, 160, 240, 320];

const gridHeight = (pictures: number) => GRID_HEIGHTS_PX[Math.min(pictures, SHOWN_PICTURES)] ?? 0;

/** The box of the pictures of a message. */
export function gridBox(pictures: readonly Pick<File, "width" | "height">[]): Size {
  if (pictures.length > 1) return { width: MEDIA_WIDTH_PX, height: gridHeight(pictures.length) };
  const { width = null, height = null } = pictures[0] ?? {};
  return pictureBox(width && height ? { width, height } : UNKNOWN_SIZE);
}

const heights = { video: 180, audio: 88, other: 58 };

/** The height of the files of a message, on a screen that is wide enough for them. */
export function filesHeight(files: readonly File[]): number {
  const pictures = files.filter((file) => kindOf(file) === "picture");
  const others = files.flatMap((file) => {
    const kind = kindOf(file);
    return kind === "picture" ? [] : heights[kind];
  });
  const top = pictures.length > 0 ? gridBox(pictures).height : 0;
  return others.reduce((sum, height) => sum + height + 4, top);
}
