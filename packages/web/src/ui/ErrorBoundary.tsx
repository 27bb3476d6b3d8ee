import { Component, type ReactNode } from "react";
import { Button } from "./Button.tsx";

/** Shows a page in place of children that fail, such as a chunk of a build that was replaced. */
export class ErrorBoundary extends Component<{ children: ReactNode }, { failed: boolean }> {
  override state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return (
      <main className="flex h-full flex-col items-center justify-center gap-4 bg-canvas px-6 text-center">
        <h1 className="text-xl font-semibold tracking-tight">This page could not be shown</h1>
        <p className="text-md text-ink-2">Loading it again helps. What you wrote is kept.</p>
        <Button icon="retry" onClick={() => location.reload()}>
          Load again
        </Button>
      </main>
    );
  }
}
