import { memo, type ReactNode, useDeferredValue, useEffect, useState } from "react";
import { copyText } from "../lib/copy.ts";
import { showError } from "../lib/errors.ts";
import { Icon } from "../ui/Icon.tsx";
import type { CodeNode, highlight } from "./highlight.ts";

type Highlight = typeof highlight;
let loaded: Highlight | null = null;

/** The highlighter, which is loaded with the first code block. */
function useHighlight(wanted: boolean): Highlight | null {
  const [found, setFound] = useState<Highlight | null>(() => loaded);
  useEffect(() => {
    if (!wanted || found) return;
    let cancelled = false;
    import("./highlight.ts").then((module) => {
      loaded = module.highlight;
      if (!cancelled) setFound(() => module.highlight);
    });
    return () => {
      cancelled = true;
    };
  }, [wanted, found]);
  return found;
}

interface CodeBlockProps {
  code: string;
  language: string | undefined;
  onCopied?: () => void;
}

export function CodeBlock({ code, language, onCopied }: CodeBlockProps) {
  const name = language?.split(/\s/)[0]?.toLowerCase() ?? "";
  const apply = useHighlight(name !== "");
  return (
    <figure dir="ltr" className="overflow-hidden rounded-md border border-line bg-canvas">
      <figcaption className="flex h-8 items-center justify-between pr-1 pl-3 text-xs text-ink-3">
        {name || "text"}
        <CopyButton text={code} onCopied={onCopied} />
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: wide code is scrolled by keyboard too
        tabIndex={0}
        className="overflow-x-auto rounded-b-md px-3 pointer-coarse:select-text pb-3 font-mono text-sm focus-visible:outline-offset-[-2px]"
      >
        <Code code={code} language={name} apply={apply} />
      </pre>
    </figure>
  );
}

interface CodeProps {
  code: string;
  language: string;
  apply: Highlight | null;
}

const Code = memo(function Code({ code, language, apply }: CodeProps) {
  // While code streams in, the new text is shown before it is highlighted.
  const highlighted = useDeferredValue(code);
  const tree = apply?.(highlighted, language);
  if (!tree) return <code>{code}</code>;
  return (
    <code>
      {tree.children.map(codeNode)}
      {code.slice(highlighted.length)}
    </code>
  );
});

function codeNode(node: CodeNode | string, index: number): ReactNode {
  if (typeof node === "string") return node;
  return (
    <span key={index} className={`hl-${node.scope?.split(".")[0] ?? "none"}`}>
      {node.children.map(codeNode)}
    </span>
  );
}

interface CopyButtonProps {
  text: string;
  onCopied?: (() => void) | undefined;
}

export function CopyButton({ text, onCopied }: CopyButtonProps) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    onCopied?.();
  };
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      onClick={() => copy().catch(showError)}
      className="inline-flex h-7 items-center gap-1.5 rounded-sm px-2 text-xs font-medium text-ink-2 hover:bg-hover hover:text-ink focus-visible:outline-offset-[-2px]"
    >
      <Icon name={copied ? "check" : "copy"} size={13} />
      {copied ? "Copied" : "Copy"}
    </button>
  );
}
