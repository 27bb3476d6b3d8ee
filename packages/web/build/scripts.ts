import { type SourceFile, textOf } from "./sources.ts";

/** The scripts that the page loads, that of the page first, and those that each view loads besides. */
export function scriptsOf(assets: readonly SourceFile[]) {
  const page = importedBy(assets, /\/main-\w+\.js$/);
  const besides = (name: string) => {
    const needed = importedBy(assets, new RegExp(`/chunk-${name}-\\w+\\.js$`));
    return needed.filter((path) => path !== page[0]);
  };
  return { page, signIn: besides("SignIn"), shell: besides("Shell"), chat: besides("ChatView") };
}

/** The path of the script that a pattern matches, and of those that it imports. */
function importedBy(files: readonly SourceFile[], pattern: RegExp): string[] {
  const needed = new Set<string>();
  const visit = (isWanted: (path: string) => boolean) => {
    const file = files.find(({ path }) => path.endsWith(".js") && isWanted(path));
    if (!file || needed.has(file.path)) return;
    needed.add(file.path);
    const imports = textOf(file).matchAll(/(?:from|import)\s*"\.?\/?(?:assets\/)?([\w.-]+\.js)"/g);
    for (const [, name] of imports) visit((path) => path === `/assets/${name}`);
  };
  visit((path) => pattern.test(path));
  if (needed.size === 0) throw new Error(`no script is named like ${pattern}`);
  return [...needed];
}
