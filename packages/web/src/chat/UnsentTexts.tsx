import { useClient, usePiece } from "@parley/client/react";
import { copyText } from "../lib/copy.ts";
import { showError } from "../lib/errors.ts";
import { toast } from "../lib/toasts.ts";
import { Button } from "../ui/Button.tsx";

/** What a person wrote in a conversation that they cannot see any more, to be copied. */
export default function UnsentTexts({ chatId }: { chatId: string }) {
  const { model } = useClient();
  const unsent = usePiece(`messages:${chatId}`).items.filter(
    ({ delivery }) => delivery === "failed",
  );
  if (unsent.length === 0) return null;
  const text = unsent
    .flatMap(({ content, files }) => [content, ...files.map(({ name }) => name)])
    .filter((part) => part !== "")
    .join("\n\n");
  const discard = () => {
    for (const { id } of unsent) model.discard(id);
  };
  return (
    <section aria-label="Not sent" className="flex w-full max-w-110 flex-col gap-3 text-left">
      <p className="text-md text-ink-2">This was not sent:</p>
      <p
        dir="auto"
        className="max-h-60 overflow-y-auto rounded-lg border border-line bg-sunken px-4 py-3 text-base break-words whitespace-pre-wrap"
      >
        {text}
      </p>
      <div className="flex gap-2">
        <Button
          size="small"
          onClick={() => void copyText(text).then(() => toast("Copied."), showError)}
        >
          Copy
        </Button>
        <Button size="small" look="danger" onClick={discard}>
          Discard
        </Button>
      </div>
    </section>
  );
}
