import type { LocalMessage } from "@parley/client";
import { lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import type { ChatContextValue, Deletion, OpenPicture } from "./context.ts";
import { DeleteMessage } from "./message/DeleteMessage.tsx";
import { MessageSheet } from "./message/MessageSheet.tsx";

const Reactors = lazy(() => import("./message/Reactors.tsx"));
const ReportMessage = lazy(() => import("./message/ReportMessage.tsx"));
const Receipt = lazy(() => import("./message/Receipt.tsx"));
const Lightbox = lazy(() => import("../files/Lightbox.tsx"));

type Layer =
  | { kind: "actions"; message: LocalMessage }
  | { kind: "reactors"; messageId: string }
  | { kind: "receipt"; messageId: string }
  | { kind: "report"; messageId: string }
  | { kind: "deletion"; deletion: Deletion }
  | { kind: "picture"; picture: OpenPicture };

type OpenLayer = Pick<
  ChatContextValue,
  "onActions" | "onReactors" | "onReceipt" | "onReport" | "onDelete" | "onPicture"
>;

/** The dialog or sheet about a message that lies over the conversation; one at a time. */
export function useLayer(): { openLayer: OpenLayer; layer: ReactNode } {
  const [layer, setLayer] = useState<Layer | null>(null);
  const openLayer = useMemo(
    (): OpenLayer => ({
      onActions: (message) => setLayer({ kind: "actions", message }),
      onReactors: (messageId) => setLayer({ kind: "reactors", messageId }),
      onReceipt: (messageId) => setLayer({ kind: "receipt", messageId }),
      onReport: (messageId) => setLayer({ kind: "report", messageId }),
      onDelete: (deletion) => setLayer({ kind: "deletion", deletion }),
      onPicture: (picture) => setLayer({ kind: "picture", picture }),
    }),
    [],
  );
  return { openLayer, layer: <Suspense>{layer && viewOf(layer, () => setLayer(null))}</Suspense> };
}

function viewOf(layer: Layer, onClose: () => void): ReactNode {
  switch (layer.kind) {
    case "actions":
      return <MessageSheet message={layer.message} onClose={onClose} />;
    case "reactors":
      return <Reactors messageId={layer.messageId} onClose={onClose} />;
    case "receipt":
      return <Receipt messageId={layer.messageId} onClose={onClose} />;
    case "report":
      return <ReportMessage messageId={layer.messageId} onClose={onClose} />;
    case "deletion":
      return <DeleteMessage {...layer.deletion} onClose={onClose} />;
    case "picture":
      return <Lightbox {...layer.picture} onClose={onClose} />;
  }
}
