import { MARK } from "../ui/Logo.tsx";

/** Twice the pixels of the icon of a tab on a fine screen. */
const SIZE_PX = 64;
/** Two digits are not legible in a tab; the title has the number. */
const MOST_SHOWN = 9;
const BADGE = { colour: "#d4351c", x: 44, y: 44, radius: 20 } as const;

let plain: string | undefined;

/** Shows the number of unread messages on the icon of the tab, and on that of the installed client. */
export function showCount(count: number): void {
  const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
  if (!icon) return;
  plain ??= icon.href;
  icon.href = count === 0 ? plain : (drawn(count) ?? plain);
  // A badge is a courtesy of the system, which may refuse it.
  void navigator.setAppBadge?.(count).catch(() => {});
}

/** The mark with a badge, as an address. */
function drawn(count: number): string | undefined {
  const canvas = document.createElement("canvas");
  canvas.width = SIZE_PX;
  canvas.height = SIZE_PX;
  const pen = canvas.getContext("2d");
  if (!pen) return undefined;
  pen.fillStyle = MARK.colour;
  pen.beginPath();
  pen.roundRect(0, 0, SIZE_PX, SIZE_PX, 15);
  pen.fill();
  pen.fillStyle = "#fff";
  pen.fill(new Path2D(MARK.bubble));
  pen.fillStyle = BADGE.colour;
  pen.beginPath();
  pen.arc(BADGE.x, BADGE.y, BADGE.radius, 0, 2 * Math.PI);
  pen.fill();
  pen.fillStyle = "#fff";
  pen.font = "700 30px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText(count > MOST_SHOWN ? `${MOST_SHOWN}+` : `${count}`, BADGE.x, BADGE.y + 2);
  return canvas.toDataURL();
}
