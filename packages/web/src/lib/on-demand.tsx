import { type ComponentType, lazy, useState } from "react";

/** A component that is loaded when it is first rendered, or before. */
export type OnDemand<Props> = ComponentType<Props> & { load: () => Promise<unknown> };

/**
 * Like `lazy`, but a component that has been loaded before is rendered at once: `lazy` would show what
 * surrounds it as loading for a moment.
 */
export function onDemand<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): OnDemand<Props> {
  let loaded: ComponentType<Props> | undefined;
  const loadOnce = async () => {
    const found = await load();
    loaded = found.default;
    return found;
  };
  const Later: ComponentType<Props> = lazy(loadOnce);
  const View = (props: Props) => {
    const [Chosen] = useState(() => loaded ?? Later);
    return <Chosen {...props} />;
  };
  return Object.assign(View, { load: loadOnce });
}
