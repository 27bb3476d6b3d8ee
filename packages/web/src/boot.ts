/// <reference lib="dom" />
// Stands in the page itself and runs before the first paint: chooses the theme, so that the page does
// not flash in the wrong one, and the skeleton, and begins to load the scripts of what is shown first.

/** Set by the build: the scripts of each view, besides those of the page. */
declare const SCRIPTS: Readonly<Record<"signIn" | "shell" | "chat", readonly string[]>>;
const { signIn, shell, chat } = SCRIPTS;

const { dataset } = document.documentElement;
const theme = localStorage.getItem("parley.theme");
if (theme === "light" || theme === "dark") dataset.theme = theme;
const isSignedIn = localStorage.getItem("parley.token") !== null;
const form = localStorage.getItem("parley.visited") === null ? "sign-up" : "sign-in";
dataset.boot = isSignedIn ? "list" : form;
const signedIn = location.pathname.startsWith("/c/") ? [...shell, ...chat] : shell;
for (const href of isSignedIn ? signedIn : signIn) {
  const link = document.createElement("link");
  link.rel = "modulepreload";
  link.href = href;
  document.head.append(link);
}

export {};
