import encodeQR from "qr";

/** The light margin, in modules, that readers need around a code. */
const MARGIN_MODULES = 4;

/** A QR code, drawn here: what it says is sent nowhere. */
export function QrCode({ text, label }: { text: string; label: string }) {
  const rows = encodeQR(text, "raw", { ecc: "medium", border: MARGIN_MODULES });
  const squares = rows.flatMap((row, y) =>
    row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])),
  );
  return (
    <svg
      role="img"
      aria-label={label}
      viewBox={`0 0 ${rows.length} ${rows.length}`}
      className="size-48 shrink-0 rounded-md"
      shapeRendering="crispEdges"
    >
      {/* Dark on light in the dark theme too: not all readers understand the reverse. */}
      <rect width="100%" height="100%" fill="#fff" />
      <path d={squares.join("")} fill="#000" />
    </svg>
  );
}
