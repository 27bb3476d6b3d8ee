import { Link } from "./Link.tsx";

interface PageTabsProps {
  label: string;
  /** The address of each page, and its name. */
  tabs: readonly (readonly [path: string, name: string])[];
  /** The address of the page that is shown. */
  open: string;
}

/** Leads to the pages that belong together. On a narrow screen it has several rows. */
export const PageTabs = ({ label, tabs, open }: PageTabsProps) => (
  <nav aria-label={label} className="flex flex-wrap gap-0.5 rounded-md bg-sunken p-0.5">
    {tabs.map(([path, name]) => (
      <Link
        key={path}
        to={path}
        aria-current={path === open ? "page" : undefined}
        className="flex h-8 flex-1 items-center justify-center rounded-sm px-2 max-sm:px-1 text-sm font-medium whitespace-nowrap text-ink-2 transition-colors hover:text-ink aria-[current]:bg-chosen aria-[current]:text-ink aria-[current]:shadow-low forced-colors:aria-[current]:outline-2 pointer-coarse:h-10"
      >
        {name}
      </Link>
    ))}
  </nav>
);
