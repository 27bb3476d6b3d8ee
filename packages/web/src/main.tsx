/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import "./styles.css";
import { ParleyProvider } from "@parley/client/react";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App, loadViews } from "./App.tsx";
import { startWorker } from "./lib/worker.ts";
import { openClient } from "./session/client.ts";
import { finishReturn } from "./session/returns.ts";
import { ErrorBoundary } from "./ui/ErrorBoundary.tsx";

const root = document.getElementById("root");
if (!root) throw new Error("the page has no #root element");
const client = openClient();
void finishReturn(client);
// Until the first view has loaded, the page shows its skeleton.
void loadViews(client.token !== null, () =>
  createRoot(root).render(
    <StrictMode>
      <ErrorBoundary>
        <ParleyProvider client={client}>
          <App />
        </ParleyProvider>
      </ErrorBoundary>
    </StrictMode>,
  ),
);
startWorker();
