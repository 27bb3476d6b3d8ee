import { join } from "node:path";
import { scriptsOf } from "./scripts.ts";
import { type SourceFile, scriptOf, textFile, textOf, WEB } from "./sources.ts";

/** Adds the page, its icons and its manifest. */
export async function withPages(assets: SourceFile[]): Promise<SourceFile[]> {
  const icons = {
    ICON: await publicAsset("icon.svg"),
    ICON_192: await publicAsset("icon-192.png"),
    ICON_512: await publicAsset("icon-512.png"),
    ICON_MASKABLE: await publicAsset("icon-maskable.png"),
  };
  const paths = Object.fromEntries(Object.entries(icons).map(([key, { path }]) => [key, path]));
  const manifest = hashed(
    textFile("manifest.webmanifest", await filled("manifest.webmanifest", paths)),
  );
  const scripts = scriptsOf(assets);
  const page = await filled("index.html", {
    ...paths,
    MANIFEST: manifest.path,
    MARK: textOf(icons.ICON),
    BOOT: `<script>${await bootScript(scripts)}</script><style>${await bootStyle()}</style>`,
    STYLE: assets.find(({ path }) => /\/main-\w+\.css$/.test(path))?.path,
    SCRIPT: scripts.page[0],
  });
  return [textFile("/index.html", page), ...Object.values(icons), manifest, ...assets];
}

const publicFile = (name: string) => Bun.file(join(WEB, "public", name));

const publicAsset = async (name: string) =>
  hashed({ path: name, bytes: await publicFile(name).bytes() });

/** The file as an asset, whose name contains a hash of its content. */
function hashed({ path, bytes }: SourceFile): SourceFile {
  const [stem, extension] = path.split(".");
  return { path: `/assets/${stem}-${Bun.hash(bytes).toString(36)}.${extension}`, bytes };
}

/** The text of a file, with values for the names between percent signs. */
const filled = async (name: string, values: Record<string, string | undefined>) =>
  (await publicFile(name).text()).replace(/%([A-Z_0-9]+)%/g, (_, key) => values[key] ?? "");

/** The script that runs before the first paint. */
const bootScript = ({ page: _, ...scripts }: ReturnType<typeof scriptsOf>) =>
  scriptOf("boot.ts", { SCRIPTS: JSON.stringify(scripts) });

/** The style of the skeleton, with the tokens that it uses. */
async function bootStyle(): Promise<string> {
  const style = await publicFile("boot.css").text();
  const tokens = await Bun.file(join(WEB, "src/styles.css")).text();
  const used = new Set(style.match(/--color-[\w-]+/g));
  const values = [...used].map((name) => new RegExp(`${name}: .+?;`).exec(tokens)?.[0]);
  const plain = style.replace(/\/\*.*?\*\//gs, "").replace(/\s+/g, " ");
  return `@layer boot{:root{${values.join("")}}}${plain}`;
}
