import { html } from "./html.ts";

/** The style of the page. The content security policy allows exactly these bytes, by their hash. */
export const style = html`
:root {
  color-scheme: light dark;
  --ground: #ffffff; --soft: #f5f6f9; --line: #e3e6ec; --ink: #171a21; --dim: #59616f;
  --accent: #4048c9; --accent-soft: #eceefd; --warn: #9a3f0b; --warn-soft: #fdf0e6;
  --key: #2f3aa8; --string: #0a6b4b; --value: #9a3f0b;
  --sans: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", "Cascadia Code", "Segoe UI Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1217; --soft: #171b22; --line: #282e38; --ink: #e7eaf0; --dim: #9aa3b2;
    --accent: #a3abff; --accent-soft: #21254a; --warn: #f1ad7c; --warn-soft: #3a2414;
    --key: #aeb6ff; --string: #83d6b0; --value: #f1ad7c;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1.5rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr);
  font: 1rem/1.65 var(--sans); color: var(--ink); background: var(--ground);
}
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; text-underline-offset: .2em; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code { font-family: var(--mono); font-size: .875em; overflow-wrap: anywhere; }
p code, li code, td code { background: var(--soft); border-radius: 4px; padding: .1em .35em; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; z-index: 2; padding: .5rem 1rem; background: var(--ground); }

nav {
  position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 2rem 1.25rem 3rem 1.75rem;
  border-right: 1px solid var(--line); font-size: .9rem; line-height: 1.4; scrollbar-width: thin;
}
nav .brand { font-size: 1.2rem; font-weight: 700; letter-spacing: -.02em; color: var(--ink); }
nav h2 {
  margin: 2rem 0 .5rem; font-size: .72rem; font-weight: 600; letter-spacing: .08em;
  text-transform: uppercase; color: var(--dim);
}
nav ul { list-style: none; margin: 0; padding: 0; }
nav li a { display: block; padding: .25rem 0; color: var(--ink); }
nav ul ul { margin: 0 0 .6rem; border-left: 1px solid var(--line); }
nav ul ul a { padding: .17rem 0 .17rem .85rem; font-family: var(--mono); font-size: .8rem; color: var(--dim); }
nav li a:hover { color: var(--accent); text-decoration: none; }

main { width: 100%; max-width: 92rem; padding: 4rem clamp(1.25rem, 4vw, 4.5rem) 8rem; }
header { max-width: 44rem; }
h1 { margin: 0; font-size: clamp(2.3rem, 5vw, 3.2rem); line-height: 1.1; letter-spacing: -.035em; }
header p { font-size: 1.2rem; line-height: 1.55; color: var(--dim); margin: 1.1rem 0 1.5rem; }
.links { display: flex; flex-wrap: wrap; gap: .6rem; list-style: none; margin: 0; padding: 0; font-size: .9rem; }
.links li { border: 1px solid var(--line); border-radius: 99px; padding: .3rem .95rem; color: var(--dim); }
section { margin-top: 5rem; padding-top: 3.5rem; border-top: 1px solid var(--line); }
section > h2 { margin: 0 0 1.5rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.025em; }
section > p, section > ul, section > ol > li > p { max-width: 44rem; }
section > .panel, .steps .panel { max-width: 52rem; }
section ul { padding-left: 1.2rem; }
section li { margin: .55rem 0; }
h3 { margin: 0; font-size: 1.3rem; line-height: 1.35; letter-spacing: -.015em; }
section > h3 { margin-top: 2.5rem; }
h4 { margin: 1.9rem 0 .5rem; font-size: .75rem; font-weight: 600; letter-spacing: .07em; text-transform: uppercase; color: var(--dim); }
.steps { list-style: none; margin: 2.5rem 0 0; padding: 0; counter-reset: step; }
.steps > li { counter-increment: step; position: relative; margin: 0; padding: 0 0 2.25rem 3.5rem; }
.steps > li::before {
  content: counter(step); position: absolute; left: 0; top: -.1rem; width: 2.1rem; height: 2.1rem; border-radius: 50%;
  display: grid; place-items: center; font-size: .95rem; font-weight: 600; color: var(--accent); background: var(--accent-soft);
}
.steps > li:not(:last-child)::after { content: ""; position: absolute; left: 1.05rem; top: 2.5rem; bottom: .5rem; border-left: 1px solid var(--line); }
.steps p { margin: .4rem 0 0; }
.steps .panel + p { margin-top: 1.25rem; }

.entry { padding: 3rem 0; border-top: 1px solid var(--line); }
section > h2 + .entry, section > p + .entry { padding-top: .5rem; border-top: 0; }
section > p + .entry { padding-top: 1.5rem; }
.entry > div:first-child > p { max-width: 44rem; }
.entry h3 a { color: inherit; }
.entry:target h3 { color: var(--accent); }
.names { display: flex; flex-wrap: wrap; gap: .5rem; margin: .7rem 0 0; }
.names > * { font: .8rem/1.5 var(--mono); padding: .15rem .6rem; border-radius: 6px; background: var(--soft); color: var(--dim); overflow-wrap: anywhere; }
.names b { font-weight: 600; color: var(--accent); }
.names .note code { background: none; padding: 0; font-size: .95em; }
.names .note { font-family: var(--sans); background: var(--accent-soft); color: var(--accent); }
.codes { display: flex; flex-wrap: wrap; gap: .4rem .9rem; list-style: none; margin: 0; padding: 0; }
.codes li { margin: 0; font-size: .9rem; }

table { width: 100%; border-collapse: collapse; font-size: .92rem; line-height: 1.5; }
table.plain { max-width: 52rem; margin-top: 1rem; }
thead th { font-size: .75rem; font-weight: 500; color: var(--dim); border-bottom: 1px solid var(--line); padding-top: 0; }
th, td { padding: .65rem 1.2rem .65rem 0; text-align: left; vertical-align: top; }
th:last-child, td:last-child { padding-right: 0; }
tbody tr + tr > * { border-top: 1px solid var(--line); }
tbody th { font-weight: 500; }
tbody th code { background: none; padding: 0; }
.plain th code { white-space: nowrap; }
.entry h3 + table { margin-top: 1.25rem; }
.fields { table-layout: fixed; }
.fields th:nth-child(1) { width: 32%; }
.fields th:nth-child(2) { width: 30%; }
td small { display: block; font-size: .8rem; color: var(--dim); }
.mark { display: block; width: max-content; font-size: .72rem; line-height: 1.5; }
.mark.required { color: var(--warn); }
.mark.optional { color: var(--dim); }
.number { font-variant-numeric: tabular-nums; white-space: nowrap; }

.panel { margin: 1rem 0 0; border: 1px solid var(--line); border-radius: 10px; background: var(--soft); overflow: hidden; }
.panel figcaption { padding: .55rem 1rem; font-size: .75rem; font-weight: 500; color: var(--dim); border-bottom: 1px solid var(--line); }
.panel pre { margin: 0; padding: .9rem 1rem; max-height: 36rem; overflow: auto; font: .75rem/1.7 var(--mono); scrollbar-width: thin; }
.panel pre code { padding: 0; background: none; font-size: inherit; overflow-wrap: normal; }
.panel i { font-style: normal; }
i.key { color: var(--key); } i.str { color: var(--string); } i.val { color: var(--value); }
.pair { display: grid; gap: 1rem; max-width: 60rem; margin: 1.5rem 0; }
.pair .panel { margin: 0; }
.examples { margin-top: 2.25rem; }

@media (min-width: 78rem) {
  .entry { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 30rem); gap: 3rem; }
  .examples { position: sticky; top: 1.5rem; align-self: start; margin-top: 0; }
  .examples > :first-child { margin-top: 0; }
  .pair { grid-template-columns: 1fr 1fr; }
}
@media (max-width: 56rem) {
  html { scroll-padding-top: 4.5rem; }
  body { display: block; }
  nav {
    z-index: 1; height: auto; display: flex; align-items: center; gap: 1.1rem; padding: .8rem 1.25rem;
    overflow-x: auto; white-space: nowrap; border-right: 0; border-bottom: 1px solid var(--line);
    background: var(--ground); scrollbar-width: none;
  }
  nav h2, nav ul ul { display: none; }
  nav ul { display: flex; gap: 1.1rem; }
  main { padding-top: 2.5rem; }
  section { margin-top: 3rem; padding-top: 2.5rem; }
  .steps > li { padding-left: 0; }
  .steps > li::before { position: static; margin-bottom: .6rem; }
  .steps > li::after { display: none; }
}
@media (max-width: 40rem) {
  thead { position: absolute; left: -99rem; }
  table, tbody, tr { display: block; }
  tr { padding: .75rem 0; }
  tr + tr { border-top: 1px solid var(--line); }
  table > tbody > tr > :nth-child(n):nth-child(n) { display: block; width: auto; border: 0; padding: 0; }
  tbody td { margin-top: .2rem; }
  .mark { display: inline-block; margin-left: .5rem; }
}
@media print { nav, .skip { display: none; } body { display: block; } .panel pre { max-height: none; white-space: pre-wrap; } }
`;
