/// <reference lib="dom" />
// Runs before anything is painted, so that a chosen theme does not flash in the other one.
const chosen = localStorage.getItem("parley.theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;

export {};
