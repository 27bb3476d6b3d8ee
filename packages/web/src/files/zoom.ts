import { type PointerEvent, type RefObject, useEffect, useMemo, useRef } from "react";
import type { Size } from "./layout.ts";
import {
  farthest,
  firstView,
  type PictureSize,
  type Point,
  scaledAround,
  type View,
  validScale,
  validView,
  WHOLE,
} from "./view.ts";

export interface Zoom {
  zoomIn: () => void;
  zoomOut: () => void;
  /** Shows the picture as at first. */
  reset: () => void;
  /** Scrolls down by a part of the height of the box. */
  scroll: (part: number) => void;
}

interface ZoomOptions {
  box: RefObject<HTMLElement | null>;
  picture: RefObject<HTMLElement | null>;
  file: PictureSize;
  /** A swipe to the left asks for the next picture (1), one to the right for the previous one (-1). */
  onSwipe: (step: 1 | -1) => void;
  /** A swipe down closes the picture. */
  onClose: () => void;
}

const STEP = 1.5;
const DOUBLE_CLICK_SCALE = 2.5;
/** The scale per pixel of a wheel; browsers report the pinch of a touchpad as a wheel with Ctrl. */
const WHEEL_RATE = 0.002;
const PINCH_RATE = 0.01;
const SWIPE_PX = 60;
const CLOSE_PX = 120;

/** Zooms a picture by wheel, double click, pinch and keys, moves it by dragging, and notices swipes. */
export function useZoom(options: ZoomOptions) {
  const latest = useRef(options);
  latest.current = options;
  const gestures = useMemo(() => new Gestures(latest), []);
  useEffect(() => {
    const box = latest.current.box.current;
    // React registers wheel listeners as passive, which cannot prevent the zoom of the page.
    const onWheel = (event: WheelEvent) => gestures.wheel(event);
    box?.addEventListener("wheel", onWheel, { passive: false });
    // The box has no size before the dialog is open, and another one after a phone was turned.
    const resizes = new ResizeObserver(() => gestures.fit());
    if (box) resizes.observe(box);
    return () => {
      box?.removeEventListener("wheel", onWheel);
      resizes.disconnect();
    };
  }, [gestures]);
  const zoom = useMemo(
    (): Zoom => ({
      zoomIn: () => gestures.zoomBy(STEP),
      zoomOut: () => gestures.zoomBy(1 / STEP),
      reset: () => gestures.reset(),
      scroll: (part) => gestures.scroll(part),
    }),
    [gestures],
  );
  return { zoom, handlers: gestures.handlers };
}

/** What the fingers or the mouse do. The view is written into the style, without a render. */
class Gestures {
  readonly #options: RefObject<ZoomOptions>;
  readonly #pointers = new Map<number, Point>();
  #view = WHOLE;
  /** The picture is shown as at first: it is fitted again when the box changes. */
  #isFirst = true;
  /** Where a drag of one pointer or a pinch of two began, and the view then. */
  #start: { at: Point; distance: number; view: View } | null = null;
  #hadTwo = false;

  constructor(options: RefObject<ZoomOptions>) {
    this.#options = options;
  }

  readonly handlers = {
    onPointerDown: (event: PointerEvent<HTMLElement>) => {
      if (event.button !== 0) return;
      event.currentTarget.setPointerCapture(event.pointerId);
      this.#pointers.set(event.pointerId, this.#place(event));
      if (this.#pointers.size === 1) this.#hadTwo = false;
      else this.#hadTwo = true;
      this.#begin();
    },
    onPointerMove: (event: PointerEvent<HTMLElement>) => {
      if (!this.#pointers.has(event.pointerId)) return;
      this.#pointers.set(event.pointerId, this.#place(event));
      this.#drag();
    },
    onPointerUp: (event: PointerEvent<HTMLElement>) => this.#lift(event, true),
    onPointerCancel: (event: PointerEvent<HTMLElement>) => this.#lift(event, false),
    onDoubleClick: (event: { clientX: number; clientY: number }) => {
      const { scale } = firstView(this.#options.current.file, this.#size());
      if (this.#view.scale === scale) this.#zoomBy(DOUBLE_CLICK_SCALE, this.#place(event));
      else this.reset();
    },
  };

  /** Fits the picture into the box. */
  fit(): void {
    if (this.#isFirst) this.reset();
    else this.#show(this.#view);
  }

  reset(): void {
    this.#show(firstView(this.#options.current.file, this.#size()));
    this.#isFirst = true;
  }

  scroll(part: number): void {
    this.#show({ ...this.#view, y: this.#view.y - part * this.#size().height });
  }

  /** A wheel scrolls a long picture and zooms others, as it does with Ctrl. */
  wheel(event: WheelEvent): void {
    event.preventDefault();
    const { file } = this.#options.current;
    const isLong = firstView(file, this.#size()).scale > 1;
    if (isLong && !event.ctrlKey && this.#farthest(this.#view).y > 0) {
      const { x, y } = this.#view;
      this.#show({ ...this.#view, x: x - event.deltaX, y: y - event.deltaY });
    } else {
      const factor = Math.exp(-event.deltaY * (event.ctrlKey ? PINCH_RATE : WHEEL_RATE));
      this.#zoomBy(factor, this.#place(event));
    }
  }

  zoomBy(factor: number): void {
    this.#zoomBy(factor, { x: 0, y: 0 });
  }

  #zoomBy(factor: number, around: Point): void {
    const { file } = this.#options.current;
    const scale = validScale(this.#view.scale * factor, file, this.#size());
    this.#show(scaledAround(this.#view, scale, around));
  }

  #show(view: View): void {
    this.#view = validView(view, this.#options.current.file, this.#size());
    this.#isFirst = false;
    this.#draw(this.#view);
  }

  #draw({ scale, x, y }: View): void {
    const { picture, box } = this.#options.current;
    if (picture.current)
      picture.current.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    const far = this.#farthest(this.#view);
    if (box.current) box.current.style.cursor = far.x > 0 || far.y > 0 ? "grab" : "";
  }

  #begin(): void {
    const at = middleOf([...this.#pointers.values()]);
    this.#start = { at, distance: this.#distance(), view: this.#view };
  }

  #drag(): void {
    if (!this.#start) return;
    const { at, distance, view } = this.#start;
    const now = middleOf([...this.#pointers.values()]);
    const moved = { ...view, x: view.x + now.x - at.x, y: view.y + now.y - at.y };
    if (this.#pointers.size === 2) {
      const { file } = this.#options.current;
      const scale = validScale((view.scale * this.#distance()) / distance, file, this.#size());
      this.#show(scaledAround(moved, scale, now));
    } else {
      this.#show(moved);
      this.#follow(now.x - at.x, now.y - at.y);
    }
  }

  /** A picture that cannot be moved in a direction follows the finger there until it is lifted. */
  #follow(right: number, down: number): void {
    const far = this.#farthest(this.#view);
    const isAcross = Math.abs(right) > Math.abs(down);
    if (isAcross && far.x === 0) this.#draw({ ...this.#view, x: right });
    else if (!isAcross && far.y === 0) this.#draw({ ...this.#view, y: down });
  }

  #lift(event: PointerEvent<HTMLElement>, isDone: boolean): void {
    if (!this.#pointers.delete(event.pointerId)) return;
    const { at, view } = this.#start ?? { at: { x: 0, y: 0 }, view: WHOLE };
    if (this.#pointers.size > 0) return void this.#begin();
    this.#start = null;
    this.#draw(this.#view);
    if (!isDone || this.#hadTwo) return;
    const { onSwipe, onClose } = this.#options.current;
    const end = this.#place(event);
    const right = end.x - at.x;
    const down = end.y - at.y;
    const far = this.#farthest(view);
    if (Math.abs(right) > Math.abs(down)) {
      if (far.x === 0 && Math.abs(right) > SWIPE_PX) onSwipe(right < 0 ? 1 : -1);
    } else if (far.y === 0 && down > CLOSE_PX && event.pointerType === "touch") {
      onClose();
    }
  }

  #distance(): number {
    const [one, other] = [...this.#pointers.values()];
    return one && other ? Math.max(1, Math.hypot(one.x - other.x, one.y - other.y)) : 1;
  }

  /** Relative to the middle of the box. */
  #place({ clientX, clientY }: { clientX: number; clientY: number }): Point {
    const box = this.#options.current.box.current?.getBoundingClientRect();
    if (!box) return { x: 0, y: 0 };
    return { x: clientX - box.left - box.width / 2, y: clientY - box.top - box.height / 2 };
  }

  #farthest({ scale }: View): Point {
    return farthest(scale, this.#options.current.file, this.#size());
  }

  #size(): Size {
    const box = this.#options.current.box.current;
    return { width: box?.clientWidth ?? 0, height: box?.clientHeight ?? 0 };
  }
}

const middleOf = (points: readonly Point[]): Point => ({
  x: points.reduce((sum, { x }) => sum + x, 0) / points.length,
  y: points.reduce((sum, { y }) => sum + y, 0) / points.length,
});
