import { useEffect, useRef, useState } from "react";
import { visibleText } from "./visible-text.ts";

/** What a server says about a tool: two lines of it, and a button to read the rest. */
export function Description({ of: title, text }: { of: string; text: string }) {
  const [isOpen, setOpen] = useState(false);
  const [isCut, setCut] = useState(false);
  const paragraph = useRef<HTMLParagraphElement>(null);
  useEffect(() => {
    const element = paragraph.current;
    if (!element || isOpen) return;
    // Its width changes, and it may be in a part of the page that is not shown yet.
    const observer = new ResizeObserver(() => {
      setCut(element.scrollHeight > element.clientHeight);
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [isOpen]);
  return (
    <>
      <p
        ref={paragraph}
        className={`text-sm break-words text-ink-3 ${isOpen ? "whitespace-pre-wrap" : "line-clamp-2"}`}
      >
        {visibleText(text)}
      </p>
      {(isCut || isOpen) && (
        <button
          type="button"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? "Show less" : "Show more"} about ${title}`}
          onClick={() => setOpen(!isOpen)}
          className="-ml-1 rounded-sm px-1 text-sm font-medium text-accent hover:underline pointer-coarse:min-h-10"
        >
          {isOpen ? "Show less" : "Show more"}
        </button>
      )}
    </>
  );
}
