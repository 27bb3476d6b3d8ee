/** The results of the benchmark: as a table, as JSON, and as a chart for the docs. */

export interface Measurement {
  /** Such as «conversations of two, 400 in flight». */
  readonly scenario: string;
  readonly metric: string;
  readonly unit: string;
  /** One value per window. */
  readonly parley: readonly number[];
  /** The floor or another baseline, in the same windows; absent if there is none. */
  readonly floor?: readonly number[];
  /** The highest allowed ratio to the floor; without a floor, the highest allowed value. */
  readonly goal?: number;
  /** Rows with a higher value, also of the floor, are marked: they say more about the generator. */
  readonly most?: number;
}

export interface Row {
  scenario: string;
  metric: string;
  unit: string;
  parley: number;
  floor: number | null;
  /** Median over the windows of the ratio within each window. */
  ratio: number | null;
  ratio_range: [lowest: number, highest: number] | null;
  goal: number | null;
  isDoubtful: boolean;
  windows: { parley: number; floor: number | null }[];
}

export function summarize(measurement: Measurement): Row {
  const { scenario, metric, unit, parley, floor, goal = null } = measurement;
  const { most = Number.POSITIVE_INFINITY } = measurement;
  const ratios = floor?.map((value, window) => (parley[window] ?? Number.NaN) / value);
  return {
    scenario,
    metric,
    unit,
    parley: median(parley),
    floor: floor ? median(floor) : null,
    ratio: ratios ? median(ratios) : null,
    ratio_range: ratios ? [Math.min(...ratios), Math.max(...ratios)] : null,
    goal,
    isDoubtful: [parley, floor ?? []].some((values) => median(values) > most),
    windows: parley.map((value, window) => ({ parley: value, floor: floor?.[window] ?? null })),
  };
}

/** Whether the ratio, or the value if there is no ratio, meets the goal; null without a goal. */
export const isMet = ({ ratio, parley, goal }: Row): boolean | null =>
  goal === null ? null : (ratio ?? parley) <= goal;

export function table(rows: readonly Row[]): string {
  const lines = [
    "                                            Parley       floor   ratio  (lowest–highest)   goal",
  ];
  let scenario = "";
  for (const row of rows) {
    if (row.scenario !== scenario) lines.push("", row.scenario);
    scenario = row.scenario;
    lines.push(tableLine(row));
  }
  return lines.join("\n");
}

function tableLine(row: Row): string {
  const { metric, unit, parley, floor, ratio, ratio_range, goal, isDoubtful } = row;
  const range = ratio_range ? `(${ratio_range.map((each) => each.toFixed(2)).join("–")})` : "";
  const met = { true: "met", false: "missed", null: "" }[`${isMet(row)}`];
  return [
    `  ${[metric, unit].filter(Boolean).join(", ").padEnd(38)}`,
    number(parley).padStart(10),
    (floor === null ? "" : number(floor)).padStart(12),
    (ratio === null ? "" : ratio.toFixed(2)).padStart(8),
    range.padStart(18),
    (goal === null ? "" : `≤ ${goal}`).padStart(7),
    ` ${isDoubtful ? "too busy" : met}`,
  ]
    .join("")
    .trimEnd();
}

const number = (value: number) => value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);

const BAR_HEIGHT = 18;
const ROW_HEIGHT = 34;
const LABEL_WIDTH = 360;
const CHART_WIDTH = 860;

/** A bar for each ratio, a line at 1 for the floor, and a tick for each goal. */
export function chart(rows: readonly Row[]): string {
  const shown = rows.filter(({ ratio }) => ratio !== null);
  const most = Math.max(2, ...shown.map(({ ratio, goal }) => Math.max(ratio ?? 0, goal ?? 0)));
  const x = (ratio: number) => LABEL_WIDTH + (ratio / most) * (CHART_WIDTH - LABEL_WIDTH - 60);
  const height = shown.length * ROW_HEIGHT + 40;
  const bars = shown.map((row, index) => {
    const top = 30 + index * ROW_HEIGHT;
    const ratio = row.ratio ?? 0;
    const color = isMet(row) === false ? "#c2410c" : "#4f46e5";
    const goal =
      row.goal === null
        ? ""
        : `<line x1="${x(row.goal)}" x2="${x(row.goal)}" y1="${top - 3}" y2="${top + BAR_HEIGHT + 3}" stroke="#111827" stroke-width="2"/>`;
    return [
      `<text x="${LABEL_WIDTH - 10}" y="${top + 13}" text-anchor="end">${escapeXml(`${row.scenario}: ${row.metric}`)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${top}" width="${x(ratio) - LABEL_WIDTH}" height="${BAR_HEIGHT}" rx="3" fill="${color}"/>`,
      `<text x="${x(ratio) + 6}" y="${top + 13}">${ratio.toFixed(2)}×</text>`,
      goal,
    ].join("");
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${CHART_WIDTH}" height="${height}" font-family="system-ui, sans-serif" font-size="12" fill="#111827">`,
    "<title>CPU of Parley compared with the floor</title>",
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    `<text x="${LABEL_WIDTH}" y="16">CPU as a ratio to the floor of the same run (line at 1); ticks are goals</text>`,
    `<line x1="${x(1)}" x2="${x(1)}" y1="24" y2="${height - 8}" stroke="#9ca3af" stroke-dasharray="3 3"/>`,
    ...bars,
    "</svg>",
    "",
  ].join("\n");
}

const escapeXml = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}
