import { useAgents, useClient } from "@parley/client/react";
import type { AgentModel, AgentProfile } from "@parley/protocol";
import { useEffect, useId, useState } from "react";
import { nameOf } from "../lib/names.ts";
import { Field } from "../ui/Field.tsx";
import { isProvided } from "./keys.ts";

/** The provider and its model: suggestions of the provider, or any other name. */
export function ModelFields({ agent }: { agent: AgentProfile | null }) {
  const providers = useProviders(agent);
  const [provider, setProvider] = useState(agent?.provider ?? providers[0]?.id ?? "");
  const [model, setModel] = useState(agent?.model ?? "");
  const isDefault = agent !== null && agent.name === agent.provider;
  const paid = useAgents().find((each) => each.name === provider && each.provider === provider);
  return (
    <div className="grid items-start gap-4 sm:grid-cols-2">
      <Field
        label="Provider"
        name="provider"
        hint={isDefault ? "A default agent keeps its provider." : undefined}
      >
        {(attributes) => (
          <select
            {...attributes}
            name="provider"
            className="field"
            disabled={isDefault}
            value={provider}
            onChange={({ target }) => {
              setProvider(target.value);
              setModel("");
            }}
          >
            {providers.map(({ id, label }) => (
              <option key={id} value={id}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      {paid && isProvided(paid) ? (
        <Field label="Model" hint="This server pays for it and chooses it.">
          {(attributes) => <input {...attributes} readOnly value={paid.model} className="field" />}
        </Field>
      ) : (
        <ModelField provider={provider} model={model} onModel={setModel} />
      )}
    </div>
  );
}

interface ModelFieldProps {
  provider: string;
  model: string;
  onModel: (model: string) => void;
}

function ModelField({ provider, model, onModel }: ModelFieldProps) {
  const list = useId();
  const models = useModels(provider);
  return (
    <Field
      label="Model"
      name="model"
      hint={models.length > 1 ? "Choose one, or write any other." : undefined}
    >
      {(attributes) => (
        <>
          <input
            {...attributes}
            name="model"
            list={list}
            maxLength={128}
            autoComplete="off"
            spellCheck="false"
            placeholder="The provider’s default"
            value={model}
            className="field"
            onChange={({ target }) => onModel(target.value)}
          />
          <datalist id={list}>
            {models.map(({ id, display_name }) => (
              <option key={id} value={id} label={display_name === id ? undefined : display_name} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  );
}

/** The models of a provider; empty until they are known, and if they cannot be. */
function useModels(provider: string): AgentModel[] {
  const client = useClient();
  const [models, setModels] = useState<AgentModel[]>([]);
  useEffect(() => {
    let isCurrent = true;
    setModels([]);
    // Suggestions only: without them, the name of a model can still be written.
    client.getAgentModels({ provider }).then(
      ({ items }) => isCurrent && setModels(items),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [client, provider]);
  return models;
}

/** The providers that are offered here: everybody has a default agent of each. */
function useProviders(agent: AgentProfile | null): { id: string; label: string }[] {
  const offered = useAgents()
    .filter(({ name, provider }) => name === provider)
    .map((each) => ({ id: each.name, label: nameOf({ ...each, kind: "agent" }) }));
  const own = agent?.provider ?? null;
  const isListed = own === null || offered.some(({ id }) => id === own);
  return isListed ? offered : [...offered, { id: own, label: own }];
}
