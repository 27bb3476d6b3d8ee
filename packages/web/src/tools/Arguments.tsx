import type { ReactNode } from "react";
import { visibleText } from "./visible-text.ts";

/** What a tool is called with, whole and as plain text: it is never read as Markdown or HTML. */
export function Arguments({ values }: { values: Readonly<Record<string, unknown>> }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return <p className="text-sm text-ink-3">No arguments</p>;
  return (
    <ScrollBox label="Arguments">
      <dl className="grid gap-x-4 gap-y-1.5 sm:grid-cols-[minmax(4rem,auto)_1fr]">
        {entries.map(([name, value]) => (
          <div key={name} className="min-w-0 sm:contents">
            <dt className="max-w-40 break-words text-ink-3">{visibleText(name)}</dt>
            <dd dir="auto" className="min-w-0 break-words whitespace-pre-wrap text-ink">
              <Value value={value} />
            </dd>
          </div>
        ))}
      </dl>
    </ScrollBox>
  );
}

const MAX_LINE_LENGTH = 60;

/** Texts as they are, so that their lines can be read; everything else as JSON. */
function Value({ value }: { value: unknown }) {
  if (value === "") return <span className="text-ink-3">(empty)</span>;
  if (typeof value === "string") return visibleText(value);
  const line = JSON.stringify(value);
  const json = line.length <= MAX_LINE_LENGTH ? line : JSON.stringify(value, null, 2);
  return <span className="text-accent">{visibleText(json)}</span>;
}

/** What a tool returned, as plain text. */
export const Output = ({ label, text }: { label: string; text: string }) => (
  <ScrollBox label={label}>
    <p dir="auto" className="break-words whitespace-pre-wrap">
      {visibleText(text)}
    </p>
  </ScrollBox>
);

const ScrollBox = ({ label, children }: { label: string; children: ReactNode }) => (
  // biome-ignore lint/a11y/useSemanticElements: it is no group of fields
  <div
    role="group"
    // biome-ignore lint/a11y/noNoninteractiveTabindex: long texts are scrolled by keyboard too
    tabIndex={0}
    aria-label={label}
    className="max-h-72 overflow-auto rounded-md border border-line bg-canvas px-3 py-2.5 font-mono text-sm pointer-coarse:select-text focus-visible:outline-offset-[-2px]"
  >
    {children}
  </div>
);
