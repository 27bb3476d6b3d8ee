import { Dots } from "../ui/Dots.tsx";

/** What an agent does right now, below the message that it is writing. */
export const TurnStatus = ({ text }: { text: string }) => (
  <p className="flex max-w-full animate-fade items-center gap-2 py-1 text-sm text-ink-3">
    <Dots />
    <span className="min-w-0 break-words">{text}</span>
  </p>
);
