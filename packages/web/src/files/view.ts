import { cropOf, type Size } from "./layout.ts";

export interface Point {
  x: number;
  y: number;
}

/** How a picture is drawn: enlarged around the middle of its box, then moved. */
export interface View extends Point {
  /** 1: the whole picture fits into the box. */
  scale: number;
}

/** The size of a picture; null until it is known. */
export interface PictureSize {
  width: number | null;
  height: number | null;
}

export const WHOLE: View = { scale: 1, x: 0, y: 0 };
const MAX_SCALE = 8;
/** Smaller pictures are enlarged to this. */
const MIN_SIDE_PX = 96;

export const enlarged = (pixels: number) => Math.max(pixels, MIN_SIDE_PX);

/** The size in which the whole picture is drawn in a box. */
function fittedSize({ width, height }: PictureSize, box: Size): Size {
  if (!width || !height) return box;
  const scale = Math.min(
    Math.min(box.width, enlarged(width)) / width,
    Math.min(box.height, enlarged(height)) / height,
  );
  return { width: width * scale, height: height * scale };
}

/** The first view of a picture: all of it, or the upper end of a long one in its own width. */
export function firstView(picture: PictureSize, box: Size): View {
  if (cropOf(picture) !== "long" || box.width === 0) return WHOLE;
  const { width } = fittedSize(picture, box);
  const scale = Math.min(box.width, enlarged(picture.width ?? 0)) / width;
  return { scale, x: 0, y: farthest(scale, picture, box).y };
}

/** How far a picture can be moved from the middle until its edge is at the edge of the box. */
export function farthest(scale: number, picture: PictureSize, box: Size): Point {
  const { width, height } = fittedSize(picture, box);
  return {
    x: Math.max(0, (width * scale - box.width) / 2),
    y: Math.max(0, (height * scale - box.height) / 2),
  };
}

/** The view with a valid scale, moved so that the picture leaves no part of the box empty. */
export function validView(view: View, picture: PictureSize, box: Size): View {
  const scale = validScale(view.scale, picture, box);
  const { x, y } = farthest(scale, picture, box);
  return { scale, x: clamp(view.x, x), y: clamp(view.y, y) };
}

/** The view at another scale, with the same part of the picture at the given point. */
export function scaledAround(view: View, scale: number, { x, y }: Point): View {
  const factor = scale / view.scale;
  return { scale, x: x - (x - view.x) * factor, y: y - (y - view.y) * factor };
}

export const validScale = (scale: number, picture: PictureSize, box: Size) =>
  Math.min(Math.max(scale, 1), MAX_SCALE * firstView(picture, box).scale);

const clamp = (value: number, most: number) => Math.min(Math.max(value, -most), most);
