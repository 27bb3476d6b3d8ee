import { useClient } from "@parley/client/react";
import type { AgentProfile, ToolServer } from "@parley/protocol";
import { useRef, useState } from "react";
import { describeError } from "../lib/errors.ts";
import { settingsPath } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Unfetched } from "../ui/Unfetched.tsx";
import { toolTitle } from "./calls.ts";
import { Description } from "./Description.tsx";
import {
  changedGrants,
  changesInOrder,
  type GrantChange,
  grantOf,
  type Policy,
  policies,
} from "./grants.ts";
import { ServerStatus } from "./ServerStatus.tsx";
import { useToolServers } from "./servers.ts";
import { visibleText } from "./visible-text.ts";

type Tool = ToolServer["tools"][number];

/** With more tools than this, a field filters them. */
const MANY_TOOLS = 12;

/** Which tools an agent may use, and whether it has to ask first. Each change is stored at once. */
export function AgentTools({ agent }: { agent: AgentProfile }) {
  const fetched = useToolServers();
  const [filter, setFilter] = useState("");
  const storeGrant = useStoreGrant(agent);
  const { value: servers } = fetched;
  if (!servers) return <Unfetched fetched={fetched} className="h-24" />;
  const offered = servers.reduce((sum, { tools }) => sum + tools.length, 0);
  return (
    <div className="flex flex-col gap-4">
      {offered === 0 ? (
        <p className="text-base text-ink-2">
          No tool server offers anything yet.{" "}
          <Link
            to={settingsPath("tool-servers")}
            className="rounded-sm font-medium text-accent underline"
          >
            Add one in the settings
          </Link>
          . Every agent can search and read the conversation it is in, and knows the time.
        </p>
      ) : (
        <Policies />
      )}
      {offered > MANY_TOOLS && (
        <input
          type="search"
          aria-label="Filter tools"
          placeholder="Filter tools"
          value={filter}
          onChange={(event) => setFilter(event.target.value)}
          className="field"
        />
      )}
      {servers.map((server) => (
        <ServerTools
          key={server.id}
          agent={agent}
          server={server}
          servers={servers}
          storeGrant={storeGrant}
          filter={filter.trim().toLowerCase()}
        />
      ))}
    </div>
  );
}

type StoreGrant = ReturnType<typeof useStoreGrant>;

/** Stores a change of one grant. The service takes all grants of an agent at once. */
function useStoreGrant(agent: AgentProfile) {
  const client = useClient();
  const [inOrder] = useState(() => changesInOrder<AgentProfile>());
  return (servers: readonly ToolServer[], change: GrantChange) =>
    inOrder(
      agent,
      (stored) => {
        const grants = changedGrants(stored, servers, change);
        return client.setAgentTools({ agent_username: agent.username, grants });
      },
      () => client.model.refreshAgents(),
    );
}

function Policies() {
  return (
    <dl className="grid gap-x-4 gap-y-1 text-sm sm:grid-cols-[auto_1fr]">
      {policies.map(({ value, label, meaning }) => (
        <div key={value} className="sm:contents">
          <dt className="font-medium">{label}</dt>
          <dd className="text-ink-3 max-sm:mb-1">{meaning}</dd>
        </div>
      ))}
    </dl>
  );
}

interface ServerToolsProps {
  storeGrant: StoreGrant;
  agent: AgentProfile;
  server: ToolServer;
  servers: readonly ToolServer[];
  filter: string;
}

function ServerTools({ agent, server, servers, storeGrant, filter }: ServerToolsProps) {
  const shown = server.tools.filter(({ name, title, description }) =>
    [name, title, description].some((text) => text.toLowerCase().includes(filter)),
  );
  const isReady = server.status === "ready";
  if (shown.length === 0 && (isReady || filter !== "")) return null;
  return (
    <section aria-label={server.name}>
      <h3 className="mb-1 text-sm font-semibold break-words text-ink-2">
        {visibleText(server.name)}
      </h3>
      {!isReady && <ServerStatus server={server} />}
      <ul className="divide-y divide-line">
        {shown.map((tool) => (
          <ToolRow
            key={tool.name}
            agent={agent}
            server={server}
            servers={servers}
            storeGrant={storeGrant}
            tool={tool}
          />
        ))}
      </ul>
    </section>
  );
}

function ToolRow({
  agent,
  server,
  servers,
  storeGrant,
  tool,
}: Omit<ServerToolsProps, "filter"> & { tool: Tool }) {
  const grant = grantOf(agent, server.id, tool.name);
  const { chosen, error, save } = useChoice((policy) =>
    storeGrant(servers, { server_id: server.id, tool: tool.name, policy }),
  );
  const select = useRef<HTMLSelectElement>(null);
  return (
    <li className="flex flex-col gap-1.5 py-2.5">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <div className="min-w-0 flex-1 basis-52">
          <p className="text-base font-medium break-words">{toolTitle(tool)}</p>
          {tool.description && <Description of={toolTitle(tool)} text={tool.description} />}
        </div>
        <select
          aria-label={`${toolTitle(tool)} of ${visibleText(server.name)}`}
          ref={select}
          value={(chosen === undefined ? grant?.policy : chosen) ?? "off"}
          aria-busy={chosen !== undefined}
          onChange={({ target }) =>
            void save(policies.find(({ value }) => value === target.value)?.value ?? null)
          }
          className="field w-44! max-sm:w-full!"
        >
          <option value="off">Not allowed</option>
          {policies.map(({ value, label }) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </select>
      </div>
      {grant?.changed && (
        <p className="flex flex-wrap items-center gap-x-2 gap-y-1 text-sm text-warn">
          <Icon name="alert" size={15} />
          Changed since you allowed it: asks again.
          <Button
            size="small"
            busy={chosen !== undefined}
            onClick={() => {
              // The button disappears.
              select.current?.focus();
              void save(grant.policy);
            }}
          >
            Allow again
          </Button>
        </p>
      )}
      {error !== null && <Notice>{describeError(error)}</Notice>}
    </li>
  );
}

/**
 * The policy that was chosen last, until it is stored; undefined otherwise. A field that is operated by
 * keys changes several times in a row, so it stays enabled.
 */
function useChoice(store: (policy: Policy | null) => Promise<void>) {
  const [chosen, setChosen] = useState<Policy | null | undefined>();
  const [error, setError] = useState<unknown>(null);
  const changes = useRef(0);
  const save = async (policy: Policy | null) => {
    const change = ++changes.current;
    setChosen(policy);
    const failure = await store(policy).then(
      () => null,
      (refusal: unknown) => refusal,
    );
    if (change !== changes.current) return;
    setChosen(undefined);
    setError(failure);
  };
  return { chosen, error, save };
}
