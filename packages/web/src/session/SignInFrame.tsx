import type { ReactNode } from "react";
import { Logo } from "../ui/Logo.tsx";

/** A page for people who are not signed in. */
export const SignInFrame = ({ children }: { children: ReactNode }) => (
  <main className="flex h-full flex-col overflow-y-auto bg-canvas px-4 py-8">
    <div className="m-auto flex w-full max-w-sm flex-col gap-6">{children}</div>
  </main>
);

/** The name of the product, and what the page is for. */
export const Masthead = ({ title, children }: { title: string; children: ReactNode }) => (
  <div className="flex flex-col items-center gap-4 text-center">
    <div className="flex flex-col items-center gap-2">
      <Logo size={56} />
      <p className="text-lg font-semibold tracking-tight">Parley</p>
    </div>
    <div>
      <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
      <p className="mt-1.5 text-md text-ink-2">{children}</p>
    </div>
  </div>
);
