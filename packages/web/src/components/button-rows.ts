interface Typed {
  readonly type: string;
}
type Button<Item extends Typed> = Extract<Item, { type: "button" }>;
type Row<Item extends Typed> = Exclude<Item, Button<Item>> | Button<Item>[];

const isButton = <Item extends Typed>(item: Item): item is Button<Item> => item.type === "button";

/** Puts consecutive buttons into one row. */
export function inRows<Item extends Typed>(items: readonly Item[]): Row<Item>[] {
  const rows: Row<Item>[] = [];
  for (const item of items) {
    const last = rows.at(-1);
    if (!isButton(item)) rows.push(item as Exclude<Item, Button<Item>>);
    else if (Array.isArray(last)) last.push(item);
    else rows.push([item]);
  }
  return rows;
}
