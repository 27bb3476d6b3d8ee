import { type PointerEvent, type RefObject, useEffect, useMemo, useRef } from "react";

export interface Zoom {
  zoomIn: () => void;
  zoomOut: () => void;
  /** Shows the whole picture again. */
  reset: () => void;
}

interface ZoomOptions {
  box: RefObject<HTMLElement | null>;
  picture: RefObject<HTMLElement | null>;
  /** A swipe to the left asks for the next picture (1), one to the right for the previous one (-1). */
  onSwipe: (step: 1 | -1) => void;
  /** A swipe down closes the picture. */
  onClose: () => void;
}

interface Point {
  x: number;
  y: number;
}

/** How the picture is drawn: enlarged around the middle of the box, then moved. */
interface View extends Point {
  scale: number;
}

const WHOLE: View = { scale: 1, x: 0, y: 0 };
const MAX_SCALE = 8;
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
    return () => box?.removeEventListener("wheel", onWheel);
  }, [gestures]);
  const zoom = useMemo(
    (): Zoom => ({
      zoomIn: () => gestures.zoomBy(STEP),
      zoomOut: () => gestures.zoomBy(1 / STEP),
      reset: () => gestures.show(WHOLE),
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
      if (this.#view.scale > 1) this.show(WHOLE);
      else this.show(scaledAround(this.#view, DOUBLE_CLICK_SCALE, this.#place(event)));
    },
  };

  wheel(event: WheelEvent): void {
    event.preventDefault();
    const factor = Math.exp(-event.deltaY * (event.ctrlKey ? PINCH_RATE : WHEEL_RATE));
    this.show(scaledAround(this.#view, this.#view.scale * factor, this.#place(event)));
  }

  zoomBy(factor: number): void {
    this.show(scaledAround(this.#view, this.#view.scale * factor, { x: 0, y: 0 }));
  }

  show(view: View): void {
    this.#view = this.#within(view);
    this.#draw(this.#view);
  }

  #draw({ scale, x, y }: View): void {
    const { picture, box } = this.#options.current;
    if (picture.current)
      picture.current.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    if (box.current) box.current.style.cursor = scale > 1 ? "grab" : "";
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
      this.show(scaledAround(moved, (view.scale * this.#distance()) / distance, now));
    } else if (view.scale > 1) {
      this.show(moved);
    } else {
      // The whole picture follows the finger until it is lifted.
      this.#draw(moved);
    }
  }

  #lift(event: PointerEvent<HTMLElement>, isDone: boolean): void {
    if (!this.#pointers.delete(event.pointerId)) return;
    const { at, view } = this.#start ?? { at: { x: 0, y: 0 }, view: WHOLE };
    if (this.#pointers.size > 0) return void this.#begin();
    this.#start = null;
    this.#draw(this.#view);
    if (!isDone || this.#hadTwo || view.scale > 1) return;
    const { onSwipe, onClose } = this.#options.current;
    const end = this.#place(event);
    const right = end.x - at.x;
    const down = end.y - at.y;
    if (Math.abs(right) > SWIPE_PX && Math.abs(right) > Math.abs(down)) {
      onSwipe(right < 0 ? 1 : -1);
    } else if (down > CLOSE_PX && event.pointerType === "touch") {
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

  /** The view with a valid scale, moved so that the picture covers the middle of the box. */
  #within({ scale, x, y }: View): View {
    const valid = Math.min(Math.max(scale, 1), MAX_SCALE);
    const box = this.#options.current.box.current;
    const farX = ((box?.clientWidth ?? 0) * (valid - 1)) / 2;
    const farY = ((box?.clientHeight ?? 0) * (valid - 1)) / 2;
    return {
      scale: valid,
      x: Math.min(Math.max(x, -farX), farX),
      y: Math.min(Math.max(y, -farY), farY),
    };
  }
}

/** The view at another scale, with the same part of the picture at the given point. */
function scaledAround(view: View, scale: number, { x, y }: Point): View {
  const valid = Math.min(Math.max(scale, 1), MAX_SCALE);
  const factor = valid / view.scale;
  return { scale: valid, x: x - (x - view.x) * factor, y: y - (y - view.y) * factor };
}

const middleOf = (points: readonly Point[]): Point => ({
  x: points.reduce((sum, { x }) => sum + x, 0) / points.length,
  y: points.reduce((sum, { y }) => sum + y, 0) / points.length,
});
